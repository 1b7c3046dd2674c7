"""Triton's cache of compiled kernels: one directory for each key.

Facts read in triton 3.9.0 (`runtime/cache.py`, `compiler/compiler.py`, `knobs.py`). `put` writes to
`KEY/tmp.pid_PID_UUID/NAME` and renames; nothing is locked. `__grp__NAME.json` has the absolute paths of the
files of one kernel: older versions return a group of which a part is missing, and crash at its load.
"""

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from cachewarden.inventory import Claim, Split
from cachewarden.layouts.base import Context, Kind, directories, files, join
from cachewarden.layouts.collecting import Collector, age_of
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.layouts.compilers.versions import Version, is_silent
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Cost, KeepReason

_KEY = re.compile(rb"[A-Z2-7]{52}")
_GROUP = re.compile(rb"__grp__.*\.json", re.DOTALL)
_WRITING = b"tmp.pid_"
_HOME = frozenset({b"cache", b"override", b"dump", b"autotune"})
_TUNED = re.compile(rb".+\.pickle", re.DOTALL)
_METADATA_LIMIT = 1 << 16

# `__init__` makes a key's directory and `put` then one in it: without them between the two, a compile fails.
_OPENING = 60 * 10**9


class Triton:
    """Key directories; at the top of `~/.triton` also what DeepSpeed tuned."""

    name = "triton"
    shape = (
        "directories named by 52 characters of base 32, or with `__grp__*.json` or `tmp.pid_*` in each of "
        "them; or a `~/.triton` with such a `cache`"
    )
    unit = "one key directory"
    locks = "none; `FILE.lock` of an autotune table"
    never = "`override` and `dump`, keys that were made within a minute or are being written, lock files"
    checked = "triton 3.9.0"
    kinds: Mapping[str, Kind] = {
        "key": Kind(
            Cost.REBUILD,
            "one key directory: its files name each other; `derived` inside an Inductor cache whose "
            "`fxgraph` has copies; stale when an earlier Triton made it, a later one came, and nobody used "
            "it for 30 days",
            otherwise=Cost.DERIVED,
        ),
        "autotune": Kind(Cost.REBUILD, "one `autotune/KEY.pickle` of DeepSpeed"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Key directories and nothing else that is a directory; or a home with such a cache."""
        return _holds_keys(tree, at) or _is_home(tree, at)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each key."""
        found = Collector(self.name, "a Triton cache", tree, at)
        if _holds_keys(tree, at):
            self._keys(tree, at, context, found)
            name_the_rest(tree, at, found)
            return found.split()
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if name == b"cache" and kind == stat.S_IFDIR:
                self._keys(tree, path, context, found)
            elif name == b"autotune" and kind == stat.S_IFDIR:
                _tuned(tree, path, found)
            elif name in _HOME:
                found.known(path)
        name_the_rest(tree, at, found)
        return found.split()

    def _keys(self, tree: Tree, at: bytes, context: Context, found: Collector) -> None:
        keys = {
            path: tree.part("triton key", path, partial(_look, tree, path, found))
            for name, kind in tree.listing(at).items()
            if kind == stat.S_IFDIR
            for path in (join(at, name),)
        }
        latest = max((key.version for key in keys.values() if key.version is not None), default=())
        for path, key in keys.items():
            stale = key.version is not None and key.version < latest and is_silent(tree, path, context.now_ns)
            claim = Claim(path, (path,), "key", self.name, Cost.REBUILD, key.keep or _busy(key, context))
            found.claims.append(replace(claim, stale=stale))


def _holds_keys(tree: Tree, at: bytes) -> bool:
    seen = False
    for name in directories(tree.listing(at)):
        if _KEY.fullmatch(name):
            seen = True
            continue
        inside = tree.listing(join(at, name))
        if inside and not any(_GROUP.fullmatch(each) or each.startswith(_WRITING) for each in inside):
            return False
        seen |= bool(inside)  # an empty one may become a key, and speaks neither for nor against
    return seen


def _is_home(tree: Tree, at: bytes) -> bool:
    listing = tree.listing(at)
    return (
        listing.get(b"cache") == stat.S_IFDIR
        and _HOME.issuperset(directories(listing))
        and _holds_keys(tree, join(at, b"cache"))
    )


def _tuned(tree: Tree, at: bytes, found: Collector) -> None:
    listing = tree.listing(at)
    for name, kind in listing.items():
        path = join(at, name)
        lock = name + b".lock"
        if kind == stat.S_IFREG and _TUNED.fullmatch(name):
            locks = (join(at, lock),) if listing.get(lock) == stat.S_IFREG else ()
            found.claim((path,), "autotune", Cost.REBUILD, locks=locks)
        else:
            found.known(path)


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key's directory shows: times (ns) of the last change to its names and of writers at work."""

    keep: KeepReason | None
    version: Version | None
    changed_ns: int
    written_ns: int


def _look(tree: Tree, path: bytes, found: Collector) -> _Key:
    writers = [join(path, name) for name in tree.listing(path) if name.startswith(_WRITING)]
    written_ns = max((-age_of(tree, each, 0) for each in writers), default=0)
    there = tree.stat(path)
    changed_ns = there.st_mtime_ns if there is not None else 0
    return _Key(found.guard((path,)), _version(tree, path), changed_ns, written_ns)


def _busy(key: _Key, context: Context) -> KeepReason | None:
    """Whether somebody may be at work in a key's directory."""
    # What is old stays old: only a young key makes the split depend on the time.
    now_ns = int(context.now_ns)
    if key.written_ns < now_ns - DAY and key.changed_ns < now_ns - _OPENING:
        return None
    young = key.written_ns >= context.now_ns - DAY or key.changed_ns >= context.now_ns - _OPENING
    return KeepReason.IN_USE if young else None


def _version(tree: Tree, key: bytes) -> Version | None:
    """The Triton that made a key, from the metadata of its first kernel; None where that is not told."""
    for name in files(tree.listing(key)):
        if name.endswith(b".json") and not name.startswith(b"__grp__"):
            return version_in(tree.read(join(key, name), _METADATA_LIMIT))
    return None


def version_in(text: bytes | None) -> Version | None:
    """The numbers of `triton_version` in a kernel's metadata; None for anything else."""
    try:
        found = json.loads(text or b"")
    except (ValueError, RecursionError):
        return None
    version = found.get("triton_version") if isinstance(found, dict) else None
    numbers = re.match(r"\d{1,6}(\.\d{1,6})*", version) if isinstance(version, str) else None
    return tuple(int(each) for each in numbers[0].split(".")) if numbers else None
