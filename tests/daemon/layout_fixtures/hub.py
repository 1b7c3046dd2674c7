"""Whole repositories, revisions, a shared store, odd names, furniture and a stranger."""

from tests.daemon.layout_trees import ODD, A, B, C, blob, links_lead_somewhere, put, repository, store

STAYS = (b"stranger/file", b".locks/models--o--m/common.lock", b"blobs/.huggingface-shared-blobs")


def build(root: bytes) -> None:
    """A cache that a newer and an older client used."""
    repository(root)
    several = repository(root, b"datasets--o--several", A, B, C)
    put(several + b"/refs/refs/pr/1", A + b"\n")
    put(several + b"/refs/gone", b"d" * 40)
    blob(several, b"nobody's")
    put(several + b"/blobs/old.incomplete")
    for name in ODD[:-1]:
        repository(root, b"models--" + name)
        repository(root, b"models--two--" + name, A, B)
    store(root, b"models--s--one", b"models--s--two")
    put(root + b"/.locks/models--o--m/common.lock")
    put(root + b"/.DS_Store")
    put(root + b"/stranger/file")


def usable(root, claim):
    """Each link of a snapshot leads to its data: what is missing offline is an error there."""
    return links_lead_somewhere(root, claim)
