"""What a reload cannot change: the ledger is open, locks are held, and opens were judged."""

from dataclasses import replace

from cachewarden.settings import Settings

_AT_START_ONLY = ("state_dir", "runtime_dir", "ignore_processes")


def with_what_is_built(before: Settings, after: Settings) -> tuple[Settings, list[str]]:
    """The new settings with what stays as it was, and the keys that would have changed otherwise."""
    old, new = before.daemon, after.daemon
    waiting = [key for key in _AT_START_ONLY if getattr(old, key) != getattr(new, key)]
    kept = replace(
        new,
        state_dir=old.state_dir,
        runtime_dir=old.runtime_dir,
        ignore_processes=old.ignore_processes,
    )
    return replace(after, daemon=kept), waiting
