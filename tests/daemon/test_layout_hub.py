"""Hub caches: repositories and revisions, and the odd and broken trees that real disks hold."""

import os

import pytest
from tests.daemon.layout_trees import (
    HASH,
    LONG_AGO,
    NOW,
    A,
    B,
    C,
    blob,
    claims,
    divide,
    link,
    put,
    repository,
)

from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import KeepReason

REPO = b"models--o--m"


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def test_a_repository_with_one_revision_is_one_entry_and_one_directory(root):
    """One rename takes it away."""
    repository(root)
    (claim,) = divide(root).claims
    assert (claim.name, claim.paths, claim.kind, claim.shared) == (REPO, (REPO,), "repo", ())


def test_revisions_go_by_themselves_with_what_only_they_use(root):
    """The snapshot, whose presence means complete, first; then what names it; then its blobs."""
    repo = repository(root, REPO, A, B)
    put(repo + b"/refs/refs/pr/1", A + b"\n")
    put(repo + b"/refs/v1", A)
    found = divide(root)
    assert set(claims(found)) == {REPO + b"@" + A, REPO + b"@" + B}
    claim = claims(found)[REPO + b"@" + A]
    assert claim.paths == tuple(
        REPO + b"/" + path
        for path in (
            b"snapshots/" + A,
            b"refs/v1",
            b"refs/refs/pr/1",
            b"trees/" + A + b".json",
            b".no_exist/" + A,
            b"blobs/onlyaaaa",
        )
    )
    assert claim.shared == (REPO + b"/blobs/common",)
    assert [each.path for each in found.shared] == [REPO + b"/blobs/common"]
    depth = [husk.count(b"/") for husk in claim.husks]
    assert depth == sorted(depth, reverse=True)
    assert claim.husks[0] == REPO + b"/refs/refs/pr"
    assert claim.husks[-1] == REPO


def test_what_no_revision_uses_is_an_entry_of_its_own(root):
    """Blobs without a link, references and file lists of commits that are not there."""
    repo = repository(root, REPO, A, B)
    blob(repo, b"orphan")
    put(repo + b"/refs/gone", C)
    put(repo + b"/trees/" + C + b".json")
    put(repo + b"/blobs/.DS_Store")
    claim = claims(divide(root))[REPO + b"@unreferenced"]
    assert claim.paths == tuple(
        REPO + b"/" + p for p in (b"refs/gone", b"trees/" + C + b".json", b"blobs/orphan")
    )


def test_real_files_instead_of_links_belong_to_their_snapshot(root):
    """A cache on a filesystem without links: nothing is shared, and blobs may be empty."""
    for commit in (A, B):
        put(root + b"/" + REPO + b"/snapshots/" + commit + b"/sub/w", b"weights")
    os.mkdir(root + b"/" + REPO + b"/blobs")
    found = divide(root)
    assert {each.paths for each in found.claims} == {(REPO + b"/snapshots/" + commit,) for commit in (A, B)}
    assert found.shared == ()


@pytest.mark.parametrize(
    "target",
    [b"../" + B + b"/only", b"../../trees/x", b"../../../" + REPO + b"/snapshots/" + B],
    ids=["another snapshot", "another part", "a snapshot, the long way"],
)
def test_a_link_into_another_part_makes_the_repository_one_entry(root, target):
    """With that part gone, the snapshot would be incomplete."""
    repo = repository(root, REPO, A, B)
    link(repo + b"/snapshots/" + A + b"/odd", target)
    assert set(claims(divide(root))) == {REPO}


def test_a_snapshot_with_two_names_makes_the_repository_one_entry(root):
    """A link beside the snapshots would dangle, and the client's scanner fails on it."""
    repo = repository(root, REPO, A, B)
    link(repo + b"/snapshots/latest", A)
    assert set(claims(divide(root))) == {REPO}


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../../../../../../etc/passwd", b"../../../x", b"self"])
def test_a_link_that_leads_away_is_just_a_link(root, target):
    """It is never followed, and nothing beyond the location is ever claimed."""
    repo = repository(root, REPO, A, B)
    link(repo + b"/snapshots/" + A + b"/away", target)
    found = divide(root)
    assert set(claims(found)) == {REPO + b"@" + A, REPO + b"@" + B}
    assert all(path.startswith(REPO) for each in found.claims for path in each.paths)


def test_an_absolute_link_to_a_blob_counts_as_its_use(root):
    """Taken for unreferenced, the blob would go under a snapshot that stays."""
    repo = repository(root, REPO, A, B)
    blob(repo, b"absolute")
    link(repo + b"/snapshots/" + A + b"/w", repo + b"/blobs/absolute")
    assert REPO + b"/blobs/absolute" in claims(divide(root))[REPO + b"@" + A].paths


def test_odd_and_broken_repositories_are_entries_and_furniture_is_none(root):
    """Nothing crashes, nothing vanishes, nothing is worth a warning."""
    good = repository(root, b"models--o--good")
    put(good + b"/refs/.DS_Store")
    put(good + b"/snapshots/.DS_Store")
    link(repository(root, b"models--o--dangling") + b"/snapshots/" + A + b"/x", b"../../blobs/gone")
    os.makedirs(root + b"/models--o--hollow/snapshots/" + A)
    put(root + b"/models--o--blobs only/blobs/z")
    os.mkdir(root + b"/models--o--nothing")
    put(repository(root, b"models--o--lost ref") + b"/refs/main", C)
    put(root + b"/kernels--o--refs only/refs/main", A)
    for name in (
        b".DS_Store",
        b"CACHEDIR.TAG",
        b"version.txt",
        b".locks/models--o--good/e.lock",
        b"abcd.lock",
    ):
        put(root + b"/" + name)
    found = divide(root)
    assert len(found.claims) == 7
    assert all(each.keep is None and each.paths == (each.name,) for each in found.claims)
    assert all(each.known for each in found.foreign)
    assert found.warnings == ()


def test_what_only_has_the_name_of_a_repository_is_a_stranger(root):
    """A file, a link to another disk, a directory of somebody's own: named in one warning."""
    repository(root)
    put(root + b"/models--a--file")
    link(root + b"/models--a--link", b"/mnt/models--a--link")
    put(root + b"/models--a--mine/thesis.txt")
    put(root + b"/my\nexperiments/ckpt.pt")
    put(root + b"/blobs/ab/somebody's")
    found = divide(root)
    assert set(claims(found)) == {REPO}
    assert len(found.foreign) == 5
    (warning,) = found.warnings
    assert "my\\nexperiments" in warning
    assert "\n" not in warning


def test_many_strangers_make_one_short_warning(root):
    """A log line, not a listing."""
    repository(root)
    for number in range(100):
        put(root + b"/stranger%03d" % number)
    (warning,) = divide(root).warnings
    assert warning.endswith("and 90 more")


def test_names_of_parts_stay_unique_whatever_people_call_their_repositories(root):
    """An `@` in a name, a snapshot called like one of our parts."""
    repo = repository(root, b"models--a", A, b"unreferenced")
    blob(repo, b"orphan")
    repository(root, b"models--a@" + A)
    names = set(claims(divide(root)))
    assert names == {
        b"models--a@@" + A,
        b"models--a@unreferenced",
        b"models--a@@unreferenced",
        b"models--a@" + A,
    }


def test_existing_locks_are_named_and_nothing_else_is(root):
    """They are held while an entry goes; a directory or a link is no lock."""
    repository(root, REPO, A, B)
    put(root + b"/.locks/" + REPO + b"/etag.lock", b"")
    put(root + b"/.locks/" + REPO + b"/soft.lock", b"4242\nnode-77\n")
    put(root + b"/.locks/" + REPO + b"/readme")
    os.mkdir(root + b"/.locks/" + REPO + b"/d.lock")
    link(root + b"/.locks/" + REPO + b"/l.lock", b"/etc/passwd")
    put(root + b"/.locks/other/etag.lock")
    locks = tuple(b".locks/" + REPO + b"/" + name for name in (b"etag.lock", b"soft.lock"))
    assert {each.locks for each in divide(root).claims} == {locks}


class TestPartials:
    """Downloads that are not complete."""

    @pytest.mark.parametrize("commits", [(A,), (A, B)], ids=["one revision", "two revisions"])
    @pytest.mark.parametrize("name", [b"e.incomplete", b"e.downloadInProgress"])
    def test_one_that_may_be_resumed_keeps_the_repository(self, root, name, commits):
        repo = repository(root, REPO, *commits)
        put(repo + b"/blobs/" + name, mtime_ns=NOW - HOUR)
        assert {each.keep for each in divide(root).claims} == {KeepReason.PARTIAL}

    @pytest.mark.parametrize("commits", [(A,), (A, B)], ids=["one revision", "two revisions"])
    def test_one_that_lives_only_while_it_is_open_keeps_nothing(self, root, commits):
        repo = repository(root, REPO, *commits)
        put(repo + b"/blobs/e.1a2b3c4d.incomplete", mtime_ns=NOW - HOUR)
        found = divide(root)
        assert {each.keep for each in found.claims} == {None}
        assert not any(each.partial for each in found.claims)

    @pytest.mark.parametrize("commits", [(A,), (A, B)], ids=["one revision", "two revisions"])
    def test_abandoned_ones_are_an_entry_of_their_own(self, root, commits):
        repo = repository(root, REPO, *commits)
        names = (b"a.incomplete", b"b.1a2b3c4d.incomplete", b"c.downloadInProgress")
        for name in names:
            put(repo + b"/blobs/" + name, mtime_ns=NOW - DAY - 1)
        found = claims(divide(root))
        partial = found.pop(REPO + b"@partial")
        assert partial.paths == tuple(REPO + b"/blobs/" + name for name in names)
        assert (partial.partial, partial.kind, partial.keep) == (True, "partial", None)
        assert len(found) == len(commits)

    def test_the_age_is_the_configurations(self, root):
        put(repository(root) + b"/blobs/e.incomplete", mtime_ns=NOW - 2 * HOUR)
        assert len(divide(root, partial_max_idle=HOUR).claims) == 2
        assert len(divide(root, partial_max_idle=3 * HOUR).claims) == 1

    def test_without_an_age_none_is_abandoned_and_none_holds_for_ever(self, root):
        put(repository(root, REPO, A, B) + b"/blobs/e.incomplete", mtime_ns=LONG_AGO)
        found = claims(divide(root, partial_max_idle=None))
        assert not any(each.partial or each.keep for each in found.values())

    def test_one_from_the_future_is_fresh(self, root):
        put(repository(root) + b"/blobs/e.incomplete", mtime_ns=NOW + 100 * DAY)
        assert {each.keep for each in divide(root).claims} == {KeepReason.PARTIAL}


def test_a_blob_that_an_nfs_client_holds_open_keeps_the_repository(root):
    """The reader may be on another machine."""
    put(repository(root, REPO, A, B) + b"/blobs/.nfs0001")
    assert {each.keep for each in divide(root).claims} == {KeepReason.IN_USE}


@pytest.mark.parametrize("commits", [(A,), (A, B)], ids=["one revision", "two revisions"])
def test_what_the_client_makes_for_a_moment_is_no_blob(root, commits):
    """Young, it is left to its maker; old, its maker is gone, and it goes without the repository."""
    repo = repository(root, REPO, *commits)
    young = (b"tmp_01234567-89ab-cdef-0123-456789abcdef", b".e.1a2b3c4d.new", b".e.1a2b3c4d.old")
    for name in young:
        put(repo + b"/blobs/" + name, mtime_ns=NOW - HOUR)
    shared = repo + b"/blobs/.e.1a2b3c4d.shared"
    link(shared, b"../../blobs/ab/" + HASH)
    os.utime(shared, ns=(NOW, NOW), follow_symlinks=False)
    found = claims(divide(root))
    assert len(found) == len(commits)
    assert not any(path.endswith(young) for each in found.values() for path in each.paths)
    for name in young:
        os.utime(repo + b"/blobs/" + name, ns=(LONG_AGO, LONG_AGO))
    partial = claims(divide(root))[REPO + b"@partial"]
    assert set(partial.paths) == {REPO + b"/blobs/" + name for name in young}
    assert partial.partial


def test_a_cache_whose_last_repository_went_is_a_hub_cache_still(root):
    """Its lock files are no entries: the next download takes them, and may hold one already."""
    put(root + b"/.locks/" + REPO + b"/etag.lock", b"")
    put(root + b"/CACHEDIR.TAG")
    found = divide(root)
    assert (found.layout, found.claims, found.warnings) == ("hub", (), ())


def test_a_revision_without_a_reference_is_as_good_as_any(root):
    """Whoever downloads a commit by its hash leaves no reference: none does not mean unused."""
    repository(root, REPO, A, B)
    repository(root, b"models--o--pinned")
    os.unlink(root + b"/models--o--pinned/refs/main")
    found = claims(divide(root))
    assert set(found) == {REPO + b"@" + A, REPO + b"@" + B, b"models--o--pinned"}
    assert not any(each.stale for each in found.values())


@pytest.mark.parametrize("kind", [b"models", b"datasets", b"spaces", b"kernels"])
@pytest.mark.parametrize("commits", [(A,), (A, B)], ids=["one revision", "two revisions"])
def test_a_repository_of_an_older_client_or_another_program_is_one_too(root, kind, commits):
    """No file lists, no markers of absent files, no locks: hub 0.24, llama.cpp."""
    repo = kind + b"--org--name"
    for commit in commits:
        blob(root + b"/" + repo, b"only" + commit[:4], commit)
    put(root + b"/" + repo + b"/refs/main", commits[0] + b"\n")
    names = {repo} if len(commits) == 1 else {repo + b"@" + commit for commit in commits}
    assert set(claims(divide(root))) == names
