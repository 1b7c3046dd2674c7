"""What the tests of delegated caches share: tools that are scripts, an account whose they are, a cache."""

import os
from dataclasses import replace
from pathlib import Path

from tests.daemon.passes import MIB

from cachewarden.evict.tools import Account


def script(path: Path, text: str, mode: int = 0o755, uid: int | None = None) -> Path:
    """An executable of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(mode)
    if uid is not None:
        os.chown(path, uid, -1)
    return path


def me(home: Path, **changes) -> Account:
    """An account whose tools are in `home`."""
    mine = Account(os.geteuid(), os.getegid(), "me", str(home), (os.getegid(),))
    return replace(mine, **changes)


def ccache_tree(root: Path, mib: int) -> None:
    """A cache of ccache with so many MiB in it."""
    (root / "0" / "a").mkdir(parents=True)
    (root / "0" / "a" / "stats").write_text("0\n")
    (root / "0" / "a" / "1R").write_bytes(b"x" * mib * MIB)
