"""Triton's cache of compiled kernels: one directory for each key.

Facts read in triton 3.9.0 (`runtime/cache.py`, `compiler/compiler.py`, `knobs.py`). `put` writes to
`KEY/tmp.pid_PID_UUID/NAME` and renames; nothing is locked. `__grp__NAME.json` has the absolute paths of the
files of one kernel: older versions return a group of which a part is missing, and crash at its load.
"""

import json
import re
import stat
from collections.abc import Mapping

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
        keys: list[bytes] = []
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if kind == stat.S_IFDIR:
                keys.append(path)
            else:
                found.stranger(path)
        stale = _superseded(tree, keys, context)
        for path in keys:
            keep = found.guard((path,)) or _busy(tree, path, context)
            found.claims.append(
                Claim(path, (path,), "key", self.name, Cost.REBUILD, keep, stale=path in stale)
            )


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


def _busy(tree: Tree, path: bytes, context: Context) -> KeepReason | None:
    """Whether somebody may be at work in a key's directory."""
    writing = [join(path, name) for name in tree.listing(path) if name.startswith(_WRITING)]
    if any(age_of(tree, each, context.now_ns) <= DAY for each in writing):
        return KeepReason.IN_USE
    there = tree.stat(path)
    young = there is None or there.st_mtime_ns > context.now_ns - _OPENING
    return KeepReason.IN_USE if young else None


def _superseded(tree: Tree, keys: list[bytes], context: Context) -> set[bytes]:
    """Keys of a Triton that is gone: what the latest one did not make and nobody used for long."""
    silent = {path for path in keys if is_silent(tree, path, context.now_ns)}
    if not silent:
        return set()
    versions = {path: version for path in keys if (version := _version(tree, path)) is not None}
    latest = max(versions.values(), default=())
    return {path for path in silent & versions.keys() if versions[path] < latest}


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
