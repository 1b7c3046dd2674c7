"""Cache trees for the tests of layouts, made by hand as their tools make them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachewarden.inventory import Claim, Split
from cachewarden.layouts import Context, split
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY

NOW = 1_800_000_000 * 10**9
LONG_AGO = NOW - 100 * DAY
A, B, C = b"a" * 40, b"b" * 40, b"c" * 40
ODD = (b"\xff\xfe", b"a\nERROR disabled", b'q"uo\\te', "é".encode(), " e\u0301".encode(), b"-rf", b"x" * 255)
HASH = b"ab" + b"0" * 62


def put(path: bytes, text: bytes = b"x", mtime_ns: int = LONG_AGO) -> None:
    """A file with its directories, last modified long ago unless told otherwise."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text)
    os.utime(path, ns=(mtime_ns, mtime_ns))


def link(path: bytes, target: bytes) -> None:
    """A symbolic link with its directories."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)


def blob(repo: bytes, name: bytes, *commits: bytes, text: bytes = b"weights") -> None:
    """A blob and a link to it, named `wNAME`, in the snapshot of each commit."""
    put(repo + b"/blobs/" + name, text)
    for commit in commits:
        link(repo + b"/snapshots/" + commit + b"/w" + name, b"../../blobs/" + name)


def repository(hub: bytes, name: bytes = b"models--o--m", *commits: bytes) -> bytes:
    """A repository in which each commit has a blob of its own and shares one, `common`, with the others."""
    repo = hub + b"/" + name
    commits = commits or (A,)
    blob(repo, b"common", *commits)
    for commit in commits:
        blob(repo, b"only" + commit[:4], commit)
        put(repo + b"/trees/" + commit + b".json", b"{}")
        put(repo + b"/.no_exist/" + commit + b"/adapter.json", b"")
    put(repo + b"/refs/main", commits[-1])
    return repo


def store(hub: bytes, *repos: bytes, refs: bool = True) -> bytes:
    """A marked shared store with one payload, which the blob `e1` of each repository links to."""
    put(hub + b"/blobs/.huggingface-shared-blobs", b"1\n")
    payload = hub + b"/blobs/ab/" + HASH
    put(payload, b"payload")
    put(payload + b".lock", b"")
    if refs:
        put(payload + b".refs", b"".join(name + b"/blobs/e1\n" for name in repos))
    for name in repos:
        link(hub + b"/" + name + b"/blobs/e1", b"../../blobs/ab/" + HASH)
        link(hub + b"/" + name + b"/snapshots/" + A + b"/w", b"../../blobs/e1")
    return payload


def offload(folder: bytes) -> None:
    """What accelerate's `offload_state_dict` leaves."""
    put(folder + b"/index.json", b"{}")
    for name in (b"layer.weight", b"layer.bias"):
        put(folder + b"/" + name + b".dat", b"numbers")


def checkpoint(folder: bytes, mtime_ns: int = LONG_AGO) -> None:
    """What accelerate's `save_state` leaves."""
    for name in (b"model.safetensors", b"optimizer.bin", b"scheduler.bin", b"random_states_0.pkl"):
        put(folder + b"/" + name)
    os.utime(folder, ns=(mtime_ns, mtime_ns))


@contextmanager
def opened(root: bytes) -> Iterator[Tree]:
    """The tree behind a directory."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield Tree(fd)
    finally:
        os.close(fd)


def divide(
    root: bytes,
    layout: str = "auto",
    *,
    keep_checkpoints: int | None = None,
    partial_max_idle: int | None = DAY,
) -> Split:
    """How a location divides at the moment NOW."""
    with opened(root) as tree:
        return split(tree, layout, Context(NOW, partial_max_idle, keep_checkpoints))


def claims(found: Split) -> dict[bytes, Claim]:
    """Claims by name."""
    assert len({each.name for each in found.claims}) == len(found.claims)
    return {each.name: each for each in found.claims}


def links_lead_somewhere(root: bytes, claim: Claim) -> bool:
    """Whether every link in what the claim names leads to something, and all that it names is there."""
    for path in claim.paths:
        full = root + b"/" + path
        if not os.path.lexists(full):
            return False
        for here, below, names in os.walk(full):
            if not all(os.path.exists(os.path.join(here, name)) for name in (*below, *names)):
                return False
    return all(os.path.exists(root + b"/" + path) for path in claim.shared)


def everything(root: bytes) -> list[bytes]:
    """All files, links and empty directories below `root`, relative to it."""
    found = []
    for here, below, names in os.walk(root):
        links = [name for name in below if os.path.islink(os.path.join(here, name))]
        empty = [b"."] if not below and not names and here != root else []
        found += [
            os.path.normpath(os.path.relpath(os.path.join(here, each), root))
            for each in (*names, *links, *empty)
        ]
    return sorted(found)


Build = Callable[[bytes], object]
