"""The blob store that repositories of a hub cache share: payloads go with their last user, or not at all."""

import os

import pytest
from tests.daemon.layout_trees import A, B, blob, claims, divide, link, put, repository, store

ONE, TWO = b"models--s--one", b"models--s--two"


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def relative(root: bytes, path: bytes) -> bytes:
    return path[len(root) + 1 :]


def test_a_payload_belongs_to_all_repositories_that_link_to_it(root):
    """It goes after them, its list of users before it, under its lock; its marker is furniture."""
    payload = relative(root, store(root, ONE, TWO))
    repository(root, b"models--o--other")
    found = divide(root)
    (shared,) = found.shared
    assert shared.path == payload
    assert shared.companions == (payload + b".refs",)
    assert shared.locks == (payload + b".lock",)
    assert not shared.kept
    assert {name for name, each in claims(found).items() if each.shared == (payload,)} == {ONE, TWO}
    assert claims(found)[b"models--o--other"].shared == ()
    assert [(each.path, each.known) for each in found.foreign] == [(b"blobs", True)]
    assert found.warnings == ()


def test_a_payload_without_its_list_of_users_is_kept(root):
    """Its users cannot be known for sure: a leak, and never a guess."""
    store(root, ONE, refs=False)
    assert [each.kept for each in divide(root).shared] == [True]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"x" * (16 << 20)], ids=["undecodable", "endless"])
def test_a_list_that_the_client_could_not_read_keeps_the_payload(root, text):
    """The client would never remove it either."""
    put(store(root, ONE) + b".refs", text)
    assert [each.kept for each in divide(root).shared] == [True]


@pytest.mark.parametrize(
    "line",
    [
        b"/etc/blobs/x",
        b"../../etc/blobs/x",
        b"models--gone/blobs/e1",
        b"stranger/../models--s--one/blobs/e1",
        b"nonsense",
        b"",
        TWO + b"/blobs/e1",
    ],
)
def test_lines_that_name_no_user_beyond_the_entries_change_nothing(root, line):
    """Climbing, absolute, stale and malformed lines; a user that has an entry."""
    payload = store(root, ONE, TWO)
    put(root + b"/stranger/file")
    put(payload + b".refs", ONE + b"/blobs/e1\n" + line + b"\n")
    assert [each.kept for each in divide(root).shared] == [False]


def test_a_user_that_has_no_entry_keeps_the_payload(root):
    """A repository that was moved to another disk is a link here, and still reads the payload."""
    payload = store(root, ONE)
    link(root + b"/" + TWO, b"/mnt/" + TWO)
    put(payload + b".refs", ONE + b"/blobs/e1\n" + TWO + b"/blobs/e1\n")
    assert [each.kept for each in divide(root).shared] == [True]


def test_a_user_that_is_not_in_the_list_counts_all_the_same(root):
    """The list is a hint, the link is the fact."""
    payload = store(root, ONE, TWO)
    put(payload + b".refs", ONE + b"/blobs/e1\n")
    found = claims(divide(root))
    assert found[ONE].shared == found[TWO].shared == (relative(root, payload),)


@pytest.mark.parametrize("marker", [None, b"2\n", b""], ids=["missing", "a later version", "empty"])
def test_without_the_marker_that_we_know_the_directory_is_foreign(root, marker):
    """It may be anybody's, and is named."""
    store(root, ONE)
    path = root + b"/blobs/.huggingface-shared-blobs"
    os.unlink(path)
    if marker is not None:
        put(path, marker)
    found = divide(root)
    assert found.shared == ()
    assert claims(found)[ONE].shared == ()
    assert [(each.path, each.known) for each in found.foreign] == [(b"blobs", False)]
    assert "blobs" in found.warnings[0]


def test_a_payload_that_nobody_uses_is_reported_and_stays(root):
    """The client's own `hf cache prune` is for that."""
    payload = store(root, ONE)
    other = payload.replace(b"/ab/ab", b"/ab/abff")[: len(payload)]
    put(other)
    put(other + b".refs", b"")
    found = divide(root)
    assert [each.path for each in found.foreign if not each.known] == [relative(root, other)]
    assert "(1)" in found.warnings[0]


def test_names_that_are_no_payloads_are_furniture_of_the_store(root):
    """Temporary files of the client, and whatever else."""
    payload = store(root, ONE)
    put(root + b"/blobs/zz/" + b"z" * 64)
    put(root + b"/blobs/cd/" + os.path.basename(payload))
    put(payload + b".refs.1a2b3c4d.tmp")
    link(root + b"/blobs/ab/ab" + b"1" * 62, b"/etc/passwd")
    found = divide(root)
    assert len(found.shared) == 1
    assert [each.path for each in found.foreign] == [b"blobs"]


def test_revisions_share_through_their_repositorys_blob(root):
    """Two hops: both revisions use the blob's link and the payload."""
    payload = store(root, ONE)
    repo = root + b"/" + ONE
    link(repo + b"/snapshots/" + B + b"/w", b"../../blobs/e1")
    blob(repo, b"own", B)
    found = divide(root)
    assert {each.path for each in found.shared} == {relative(root, payload), ONE + b"/blobs/e1"}
    assert claims(found)[ONE + b"@" + B].shared == (ONE + b"/blobs/e1", relative(root, payload))
    assert claims(found)[ONE + b"@" + A].shared == (ONE + b"/blobs/e1", relative(root, payload))


def test_a_link_of_one_revision_alone_goes_with_it(root):
    """And the payload after it."""
    payload = store(root, ONE)
    blob(root + b"/" + ONE, b"own", B)
    claim = claims(divide(root))[ONE + b"@" + A]
    assert claim.paths == (ONE + b"/snapshots/" + A, ONE + b"/blobs/e1")
    assert claim.shared == (relative(root, payload),)


def test_a_marked_store_alone_makes_a_hub_cache(root):
    """All its repositories may have gone."""
    put(root + b"/blobs/.huggingface-shared-blobs", b"1\n")
    assert divide(root).layout == "hub"
