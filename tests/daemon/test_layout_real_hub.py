"""Our entries against huggingface_hub's own eyes: whatever goes, the rest scans as before.

The trees are made by the client's own functions, offline where they allow it.
"""

import os
import shutil
from pathlib import Path
from zlib import crc32

import pytest
from huggingface_hub import scan_cache_dir, try_to_load_from_cache
from huggingface_hub.file_download import _cache_commit_hash_for_specific_revision, _create_symlink
from huggingface_hub.utils._shared_blobs import publish_blob_to_shared_store, try_link_from_shared_store
from tests.daemon.layout_trees import claims, divide

from cachewarden.inventory import Claim, Split

COMMITS = {"main": "a" * 40, "refs/pr/1": "b" * 40, "v1.0": "c" * 40}
HASH = "ab" + "1" * 62


def download(hub: Path, repo: str, revision: str, files: dict[str, bytes]) -> None:
    """What the client leaves of a download, by its own functions for references and links."""
    folder = hub / f"models--{repo.replace('/', '--')}"
    commit = COMMITS[revision]
    _cache_commit_hash_for_specific_revision(str(folder), revision, commit)
    for name, text in files.items():
        blob = folder / "blobs" / f"{crc32(text):040x}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(text)
        pointer = folder / "snapshots" / commit / name
        pointer.parent.mkdir(parents=True, exist_ok=True)
        _create_symlink(str(blob), str(pointer), new_blob=True)


def share(hub: Path, repo: str, revision: str, text: bytes) -> None:
    """A file of a repository that the client puts into, or takes from, the store of all repositories."""
    download(hub, repo, revision, {"shared.bin": text})
    folder = hub / f"models--{repo.replace('/', '--')}"
    blob = (folder / "snapshots" / COMMITS[revision] / "shared.bin").readlink()
    path = os.path.normpath(folder / "snapshots" / COMMITS[revision] / blob)
    facts = {"blob_path": path, "xet_hash": HASH, "cache_dir": str(hub), "expected_size": len(text)}
    if not try_link_from_shared_store(**facts):
        assert publish_blob_to_shared_store(**facts)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    path = tmp_path / "hub"
    path.mkdir()
    download(path, "o/single", "main", {"config.json": b"1", "sub/dir/w.bin": b"2"})
    for revision in COMMITS:
        files = {
            "config.json": b"same",
            "w.bin": revision.encode(),
            "nested/t.json": b"t" + revision.encode(),
        }
        download(path, "o/several", revision, files)
    for repo in ("s/one", "s/two"):
        share(path, repo, "main", b"payload of both")
    return path


def scanned(hub: Path) -> dict[tuple[str, str], set[str]]:
    """Files of each revision that the client sees, all readable, without any warning."""
    found = scan_cache_dir(hub)
    assert found.warnings == []
    seen = {}
    for repo in found.repos:
        for revision in repo.revisions:
            assert all(file.file_path.read_bytes() for file in revision.files)
            names = {str(file.file_path.relative_to(revision.snapshot_path)) for file in revision.files}
            seen[repo.repo_id, revision.commit_hash] = names | {f"ref {ref}" for ref in revision.refs}
    return seen


def evict(hub: Path, found: Split, claim: Claim) -> None:
    """Remove as eviction does: paths in order, then what no other entry uses, then emptied directories."""
    others = {path for each in found.claims if each is not claim for path in each.shared}
    last = [each for each in found.shared if each.path in claim.shared and each.path not in others]
    for path in (*claim.paths, *(path for each in last for path in (*each.companions, each.path))):
        full = os.fsencode(hub) + b"/" + path
        shutil.rmtree(full) if os.path.isdir(full) and not os.path.islink(full) else os.unlink(full)
    for husk in claim.husks:
        full = os.fsencode(hub) + b"/" + husk
        if os.path.isdir(full) and not os.listdir(full):
            os.rmdir(full)


def test_entries_are_the_repositories_and_revisions_that_the_client_sees(hub):
    """One for a repository with one revision, one for each revision otherwise."""
    names = {name.decode() for name in claims(divide(os.fsencode(hub)))}
    several = {f"models--o--several@{commit}" for commit in COMMITS.values()}
    assert names == {"models--o--single", "models--s--one", "models--s--two", *several}


@pytest.mark.parametrize("index", range(6))
def test_whatever_goes_the_rest_scans_as_before(hub, index):
    """No warning, no missing file, no reference to what is gone."""
    before = scanned(hub)
    found = divide(os.fsencode(hub))
    claim = found.claims[index]
    evict(hub, found, claim)
    repo, _, commit = claim.name.decode().removeprefix("models--").partition("@")
    gone = {key for key in before if key[0] == repo.replace("--", "/") and commit in ("", key[1])}
    assert len(gone) == 1
    assert scanned(hub) == {key: value for key, value in before.items() if key not in gone}


def test_one_after_the_other_everything_goes_and_the_scan_is_clean_at_each_step(hub):
    """The last entries take the shared payload along; the store's marker stays, and no empty directory."""
    while (found := divide(os.fsencode(hub))).claims:
        evict(hub, found, found.claims[-1])
        scanned(hub)
    left = {str(path.relative_to(hub)) for path in hub.rglob("*") if path.is_file()}
    assert left == {"blobs/.huggingface-shared-blobs", f"blobs/ab/{HASH}.lock"}
    assert not list(hub.glob("models--*"))


def test_after_a_revision_went_the_client_finds_the_others_and_misses_it(hub):
    """A miss, and nothing half there."""
    found = divide(os.fsencode(hub))
    evict(hub, found, claims(found)[f"models--o--several@{COMMITS['main']}".encode()])
    assert try_to_load_from_cache("o/several", "w.bin", cache_dir=hub) is None
    other = try_to_load_from_cache("o/several", "w.bin", cache_dir=hub, revision="refs/pr/1")
    assert isinstance(other, str)
    assert Path(other).read_bytes() == b"refs/pr/1"
