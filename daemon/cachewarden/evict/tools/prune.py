"""Have the tool of a cache prune it."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from cachewarden.evict.tools.account import (
    Account,
    RefusedError,
    account_of,
    check_way,
    find_executable,
    owner_of,
)
from cachewarden.evict.tools.child import Ran, run
from cachewarden.evict.tools.commands import answers, command_for
from cachewarden.paths import show

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
    path = os.fsdecode(cache.path)
    command = command_for(cache.layout, path, cache.target_bytes)
    if command is None:
        raise RefusedError(f"{cache.layout} has no command that prunes its cache")
    account = accounts(owner_of(cache.root_fd, cache.path))
    check_way(cache.root_fd, cache.path, account)
    executable = find_executable(command.names, account)
    if command.question:
        said = run((executable, *command.question), command.environment, account, timeout_seconds, stop)
        if said.status != 0 or not answers(said.output, path):
            raise RefusedError(f"it may prune more than {show(cache.path)}: {said.sentence}")
    return run((executable, *command.arguments), command.environment, account, timeout_seconds, stop)
