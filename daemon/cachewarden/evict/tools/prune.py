"""Have the tool of a cache prune it."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from cachewarden.evict.tools.account import Account, RefusedError, account_of, find_executable, owner_of
from cachewarden.evict.tools.child import Ran, run
from cachewarden.evict.tools.commands import command_for

_TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ToolsCache:
    """A cache of another tool: its open root, its path, the name of its layout.

    `target_bytes` is what it should come down to, for a tool that can be told.
    """

    root_fd: int
    path: bytes
    layout: str
    target_bytes: int | None = None


def prune(
    cache: ToolsCache,
    stop: Callable[[], bool],
    accounts: Callable[[int], Account] = account_of,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> Ran:
    """Run the command of the tool that owns such a cache, as the owner of this one.

    `accounts` knows the user of each user id. Raises RefusedError where that cannot be done safely or
    there is no such command, OSError where the command cannot be started.
    """
    command = command_for(cache.layout, os.fsdecode(cache.path), cache.target_bytes)
    if command is None:
        raise RefusedError(f"{cache.layout} has no command that prunes its cache")
    account = accounts(owner_of(cache.root_fd, cache.path))
    executable = find_executable(command.names, account)
    return run((executable, *command.arguments), command.environment, account, timeout_seconds, stop)
