"""Datasets caches: what goes with what, what it costs, and trees that are broken in every way."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_fixtures.datasets import HASH, build, info, prepared
from tests.daemon.layout_trees import LONG_AGO, NOW, claims, divide, everything, link, put

from cachewarden.layouts.datasets.info import INFO, LIMIT, Info, parse
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import Cost, KeepReason

VERSION = b"org___name/default/0.0.0"
NAME = VERSION + b"/" + HASH
COMMIT = b"c" * 40


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def hub_copy(home: bytes, size: int, repo: bytes = b"datasets--org--Name", commit: bytes = COMMIT) -> bytes:
    """A repository of a data set in the hub cache of a home, with a file of `size` bytes."""
    path = home + b"/hub/" + repo
    put(path + b"/blobs/e", b"d" * size)
    link(path + b"/snapshots/" + commit + b"/data/train.parquet", b"../../../blobs/e")
    put(path + b"/refs/main", commit)
    return path


def cost(home: bytes, name: bytes) -> Cost:
    return claims(divide(home))[b"datasets/" + name].cost


def test_a_dataset_is_its_description_and_then_its_data(root):
    """Data without the description is prepared anew; the description without data is an error for ever."""
    prepared(root + b"/" + NAME)
    put(root + b"/" + NAME + b"/LICENSE")
    claim = claims(divide(root))[NAME]
    assert claim.paths[0] == NAME + b"/" + INFO
    assert {os.path.basename(path) for path in claim.paths[1:]} == {
        b"LICENSE",
        b"name-train-00000-of-00002.arrow",
        b"name-train-00001-of-00002.arrow",
    }
    assert claim.husks == (NAME,)


def test_all_locks_of_a_dataset_are_held(root):
    """Those beside it, and at the top that of its path, whatever the path is for the program that uses it."""
    prepared(root + b"/" + NAME)
    top = b"_mnt_in_a_container_" + NAME.replace(b"/", b"_") + b".lock"
    put(root + b"/" + top, b"")
    put(root + b"/_somewhere_else_0.0.0_" + b"cd" * 32 + b".lock", b"")
    put(root + b"/" + NAME + b"_info.lock", b"")
    claim = claims(divide(root))[NAME]
    ends = (b"_builder.lock", b"_info.lock", b".incomplete_info.lock")
    assert set(claim.locks) == {top, *(NAME + end for end in ends)}


def test_one_map_is_one_entry_however_many_processes_wrote_it(root):
    """Half of its files would be a miss all the same."""
    prepared(root + b"/" + NAME)
    names = [b"cache-0123456789abcdef_0000%d_of_00003.arrow" % rank for rank in range(3)]
    for name in (*names, b"cache-fedcba9876543210.arrow"):
        put(root + b"/" + NAME + b"/" + name)
    found = claims(divide(root))
    assert found[NAME + b"@cache-0123456789abcdef"].paths == tuple(NAME + b"/" + name for name in names)
    assert set(found) == {NAME, NAME + b"@cache-0123456789abcdef", NAME + b"@cache-fedcba9876543210"}
    assert not any(each.stale for each in found.values())


def test_what_was_mapped_from_a_dataset_that_is_gone_is_stale(root):
    """The next program prepares it anew, and removes the directory before that."""
    put(root + b"/" + NAME + b"/cache-0123456789abcdef.arrow")
    (claim,) = divide(root).claims
    assert (claim.kind, claim.stale, claim.keep) == ("map", True, None)


class TestCost:
    """What a miss costs depends on what is left of the sources."""

    @pytest.mark.parametrize(("size", "expected"), [(1000, Cost.REBUILD), (999, Cost.DOWNLOAD)])
    def test_it_is_computed_again_while_all_its_source_is_here(self, root, size, expected):
        prepared(root + b"/datasets/" + NAME)  # from 1000 bytes
        hub_copy(root, size)
        assert cost(root, NAME) is expected

    def test_the_very_commit_counts_where_the_directory_names_it(self, root):
        name = VERSION + b"/" + COMMIT
        prepared(root + b"/datasets/" + name)
        hub_copy(root, 1000, commit=b"d" * 40)
        assert cost(root, name) is Cost.DOWNLOAD
        hub_copy(root, 1000, b"datasets--org--name")
        assert cost(root, name) is Cost.REBUILD

    @pytest.mark.parametrize("repo", [b"datasets--org--other", b"models--org--name", b"datasets--name"])
    def test_another_repository_is_no_source(self, root, repo):
        prepared(root + b"/datasets/" + NAME)
        hub_copy(root, 1000, repo)
        assert cost(root, NAME) is Cost.DOWNLOAD

    @pytest.mark.parametrize(
        ("repo", "name"),
        [
            (b"datasets--HuggingFace--MyDataSet", b"HuggingFace___my_data_set"),
            (b"datasets--a--b--c", b"a___b--c"),
            (b"datasets--a--b--c", b"a--b___c"),
            (b"datasets--Squad", b"squad"),
        ],
    )
    def test_names_are_compared_as_the_builder_writes_them(self, root, repo, name):
        put(root + b"/datasets/_x_" + name + b"_default_0.0.0_" + HASH + b".lock", b"")
        prepared(root + b"/datasets/" + name + b"/default/0.0.0/" + HASH)
        hub_copy(root, 1000, repo)
        assert cost(root, name + b"/default/0.0.0/" + HASH) is Cost.REBUILD

    def test_through_the_store_of_all_repositories(self, root):
        prepared(root + b"/datasets/" + NAME)
        repo = hub_copy(root, 1000)
        os.makedirs(root + b"/hub/blobs/ab")
        os.rename(repo + b"/blobs/e", root + b"/hub/blobs/ab/payload")
        link(repo + b"/blobs/e", b"../../blobs/ab/payload")
        assert cost(root, NAME) is Cost.REBUILD

    @pytest.mark.parametrize(
        "target", [b"/etc/passwd", b"../../../../../../../etc/passwd", b"e", b"../nowhere", b"../../../mine"]
    )
    def test_a_link_that_leads_to_no_file_of_the_cache_is_no_source(self, root, target):
        put(root + b"/mine", b"d" * 1000)
        prepared(root + b"/datasets/" + NAME)
        repo = hub_copy(root, 1000)
        os.unlink(repo + b"/blobs/e")
        link(repo + b"/blobs/e", target)
        assert cost(root, NAME) is Cost.DOWNLOAD

    def test_of_a_location_by_itself_nobody_knows_what_lies_beside_it(self, root):
        prepared(root + b"/datasets/" + NAME)
        hub_copy(root, 1000)
        assert claims(divide(root + b"/datasets"))[NAME].cost is Cost.DOWNLOAD

    @pytest.mark.parametrize("builder", ["generator", "spark", "sql"])
    def test_what_no_file_can_give_again_is_lost(self, root, builder):
        """A generator's function, a query's answer."""
        prepared(root + b"/org___a/default/0.0.0", builder=builder)
        (claim,) = divide(root).claims
        assert (claim.kind, claim.cost, claim.keep) == ("generated", Cost.LOST, KeepReason.PROTECTED)

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"builder_name": 7}', b"\xff"])
    def test_a_generator_shows_by_its_directory_where_the_description_is_damaged(self, root, text):
        prepared(root + b"/generator/default/0.0.0")
        put(root + b"/generator/default/0.0.0/dataset_info.json", text)
        (claim,) = divide(root).claims
        assert claim.keep is KeepReason.PROTECTED


class TestPartials:
    """A preparation that was killed is never gone on with."""

    @pytest.mark.parametrize(
        ("age", "keep", "partial"), [(HOUR, KeepReason.PARTIAL, False), (DAY + 1, None, True)]
    )
    @pytest.mark.parametrize("path", [VERSION, NAME])
    def test_a_half_of_a_dataset_is_held_by_its_age(self, root, path, age, keep, partial):
        half = root + b"/" + path + b".incomplete"
        put(half + b"/name-train.arrow", mtime_ns=NOW - age)
        os.utime(half, ns=(NOW - age, NOW - age))
        put(root + b"/" + path + b"_builder.lock", b"")
        (claim,) = divide(root).claims
        assert (claim.kind, claim.keep, claim.partial) == ("partial", keep, partial)
        assert claim.locks == (path + b"_builder.lock",)

    def test_half_a_result_goes_without_the_dataset(self, root):
        prepared(root + b"/" + NAME)
        put(root + b"/" + NAME + b"/tmp_abc123x", mtime_ns=NOW - 2 * DAY)
        found = claims(divide(root))
        assert found[NAME + b"@partial"].partial
        assert not any(b"tmp" in path for path in found[NAME].paths)

    def test_half_a_download_goes_without_anything_else(self, root):
        put(root + b"/downloads/" + HASH)
        put(root + b"/downloads/" + HASH + b".json", b"{}")
        put(root + b"/downloads/" + b"1" * 64 + b".incomplete", mtime_ns=NOW - HOUR)
        found = claims(divide(root, partial_max_idle=HOUR // 2))
        assert found[b"downloads/" + b"1" * 64 + b".incomplete"].partial
        assert found[b"downloads/" + HASH].paths == tuple(
            b"downloads/" + HASH + end for end in (b"", b".json")
        )

    def test_without_an_age_none_is_abandoned_and_none_holds_for_ever(self, root):
        put(root + b"/" + NAME + b".incomplete/f.arrow")
        os.utime(root + b"/" + NAME + b".incomplete", ns=(LONG_AGO, LONG_AGO))
        put(root + b"/" + NAME + b"_builder.lock", b"")
        (claim,) = divide(root, partial_max_idle=None).claims
        assert (claim.partial, claim.keep) == (False, None)


@pytest.mark.parametrize("name", [b"state.json", b"dataset_dict.json"])
@pytest.mark.parametrize("place", [b"mine", b"org___name/mine", NAME])
def test_what_somebody_saved_here_is_protected_at_every_level(root, name, place):
    """`save_to_disk` into the cache's own directory."""
    prepared(root + b"/json/default/0.0.0/" + HASH)
    put(root + b"/" + place + b"/" + name)
    put(root + b"/" + place + b"/data-00000-of-00001.arrow")
    found = claims(divide(root))
    assert (found[place].keep, found[place].cost) == (KeepReason.PROTECTED, Cost.LOST)


def test_when_the_last_dataset_went_the_locks_make_it_a_datasets_cache_still(root):
    """As a cache of another kind, its lock files would be entries."""
    put(root + b"/_home_x_org___name_default_0.0.0_" + HASH + b".lock", b"")
    put(root + b"/" + NAME + b"_builder.lock", b"")
    found = divide(root)
    assert (found.layout, found.claims, found.warnings) == ("datasets", (), ())


@pytest.mark.parametrize("path", [b"downloads", b"downloads/extracted", VERSION, b"org___other/default"])
def test_a_directory_that_is_still_empty_is_no_stranger_and_no_entry(root, path):
    """Its program makes it first."""
    prepared(root + b"/json/default/0.0.0/" + HASH)
    os.makedirs(root + b"/" + path)
    found = divide(root)
    assert (len(found.claims), found.warnings) == (1, ())
    assert path in {each.path for each in found.foreign}


def test_an_archive_that_was_unpacked_goes_under_its_lock(root):
    """It is unpacked in its place: only the lock says that it is complete."""
    put(root + b"/downloads/" + HASH)
    put(root + b"/downloads/" + HASH + b".json", b"{}")
    extracted = b"downloads/extracted/" + HASH
    put(root + b"/" + extracted + b"/a/b")
    put(root + b"/" + extracted + b".lock", b"")
    claim = claims(divide(root))[extracted]
    assert (claim.paths, claim.locks) == ((extracted,), (extracted + b".lock",))


_text = st.text() | st.none() | st.integers() | st.floats() | st.booleans()
_json = st.recursive(_text, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


_NAMES = [
    *(
        b"org___name",
        b"default",
        b"0.0.0",
        HASH,
        COMMIT,
        b"downloads",
        b"extracted",
        b"json",
        b"hub",
        b"token",
    ),
    *(b"dataset_info.json", b"state.json", b"a.arrow", b".arrow", b"cache-0_00000_of_00002.arrow"),
    *(b"cache-\n.arrow", b"tmpabcd1234", b"\xff\n", HASH + b".json", HASH + b".incomplete"),
    *(HASH + b"_builder.lock", b"_x_0.0.0_" + HASH + b".lock"),
]


class TestFuzz:
    """Descriptions that no builder wrote."""

    @given(st.binary())
    def test_any_bytes_are_read_and_nothing_is_believed_of_them(self, text):
        found = parse(text)
        assert found == Info() or text.strip().startswith(b"{")

    @given(
        st.dictionaries(
            st.sampled_from(["builder_name", "download_size", "splits"]) | st.text(), _json, max_size=5
        )
    )
    def test_any_json_is_read(self, content):
        found = parse(json.dumps(content).encode())
        assert found.builder is None or found.builder == content["builder_name"]
        assert found.source_bytes is None or found.source_bytes == content["download_size"] > 0

    @pytest.mark.parametrize(
        "text",
        [b"[" * 100_000, b'{"a":' * 50_000, b'{"download_size": ' + b"9" * 5000 + b"}", b" " * LIMIT + b"{}"],
        ids=["deep lists", "deep objects", "a long number", "too long"],
    )
    def test_what_is_too_much_says_nothing(self, text):
        assert parse(text) == Info()

    @given(
        st.lists(
            st.tuples(
                st.lists(st.sampled_from(_NAMES), min_size=1, max_size=6),
                st.sampled_from([b"file", b"directory", b"link"]),
                st.binary(max_size=40) | st.just(info()),
            ),
            max_size=14,
        )
    )
    def test_any_tree_is_divided_without_a_crash_and_nothing_is_lost(self, tmp_path_factory, things):
        root = os.fsencode(tmp_path_factory.mktemp("any"))
        prepared(root + b"/" + NAME)
        for parts, kind, text in things:
            path = root + b"/" + b"/".join(parts)
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if kind == b"directory":
                    os.makedirs(path, exist_ok=True)
                elif kind == b"link":
                    os.symlink(text.replace(b"\0", b"") or b"x", path)
                else:
                    put(path, text)
            except OSError:
                continue  # a file stands where a directory would
        found = divide(root)
        paths = [path for claim in found.claims for path in (*claim.paths, *claim.locks, *claim.husks)]
        assert all(os.path.lexists(root + b"/" + path) for path in paths)
        assert not any(path.startswith(b"/") or b".." in path.split(b"/") for path in paths)
        assert len({claim.name for claim in found.claims}) == len(found.claims)
        owned = [path for claim in found.claims for path in claim.paths] + [
            each.path for each in found.foreign
        ]
        for path in everything(root):
            assert any(path == each or path.startswith(each + b"/") for each in owned), path


def test_the_fixture_has_every_kind_of_entry(root):
    """What the contract says of this layout is said of all of it."""
    build(root)
    assert {each.kind for each in divide(root).claims} == {
        "prepared",
        "map",
        "download",
        "extracted",
        "partial",
        "generated",
        "saved",
    }


def test_each_of_many_datasets_is_held_by_its_own_locks_alone(root):
    """At the top lie the locks of all; one name may be the end of another."""
    for number in range(60):
        prepared(root + b"/org___d%d/default/0.0.0/" % number + HASH)
        put(root + b"/_x_org___d%d_default_0.0.0_" % number + HASH + b".lock", b"")
    found = claims(divide(root))
    assert len(found) == 60
    assert all(len(each.locks) == 3 for each in found.values())
