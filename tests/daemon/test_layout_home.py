"""A home of Hugging Face, and the parts of it that are told by their shape wherever they lie."""

import os
from pathlib import Path

import pytest
from tests.daemon.layout_fixtures import datasets, hub, local_dir, xet
from tests.daemon.layout_fixtures.xet import ENDPOINT, KEY
from tests.daemon.layout_trees import LONG_AGO, NOW, claims, divide, put, repository

from cachewarden_policies.policy import HOUR
from cachewarden_policies.reasons import Cost, KeepReason


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def layouts(root: bytes) -> set[str]:
    """Which layouts have entries there."""
    return {claim.layout for claim in divide(root).claims}


def strangers(root: bytes) -> set[bytes]:
    return {each.path for each in divide(root).foreign if not each.known}


@pytest.mark.parametrize(
    "extra",
    [b"token", b"stored_tokens", b"accelerate/default_config.json", b"xet/logs/l", b"assets/lib/ns/f"],
)
def test_a_home_is_told_by_what_lies_beside_its_hub(root, extra):
    """Elsewhere, a directory beside a hub cache is a plain entry."""
    repository(root + b"/hub")
    put(root + b"/other/file")
    assert divide(root).layout == "accelerate"
    put(root + b"/" + extra)
    found = divide(root)
    assert found.layout == "home"
    assert set(claims(found)) == {b"hub/models--o--m"}
    assert strangers(root) == {b"other"}


def test_credentials_alone_make_a_home_and_nothing_of_it_goes(root):
    """Somebody logged in and downloaded nothing yet."""
    put(root + b"/token")
    put(root + b"/notes/file")
    found = divide(root)
    assert (found.layout, found.claims) == ("home", ())
    assert [text for text in found.warnings if "notes" in text]


def test_each_cache_goes_by_its_own_layout_whatever_it_is_called(root):
    """Names of caches say nothing."""
    put(root + b"/token")
    hub.build(root + b"/weights")
    datasets.build(root + b"/data")
    xet.build(root + b"/chunks")
    assert layouts(root) == {"hub", "datasets", "xet"}


@pytest.mark.parametrize("name", [b"assets", b"sandbox", b"accelerate"])
def test_what_looks_like_a_cache_in_a_place_of_others_is_theirs(root, name):
    """A library may keep anything in its assets."""
    repository(root + b"/" + name)
    put(root + b"/token")
    found = divide(root)
    assert (found.claims, found.warnings) == ((), ())


def test_a_home_inside_another_folder_is_one_there(root):
    """As a project's folder for everything."""
    put(root + b"/caches/hf/token")
    repository(root + b"/caches/hf/hub")
    put(root + b"/caches/hf/mine/file")
    put(root + b"/caches/other/file")
    found = claims(divide(root))
    assert set(found) == {b"caches/hf/hub/models--o--m", b"caches/other"}


@pytest.mark.parametrize("name", [b"hub", b"datasets", b"xet", b"modules", b"assets", b"whatever"])
def test_a_cache_that_is_still_empty_is_no_stranger(root, name):
    """Its program makes the directory first."""
    put(root + b"/token")
    os.mkdir(root + b"/" + name)
    found = divide(root)
    assert (found.claims, found.warnings) == ((), ())


def test_xet_with_nothing_but_logs_is_what_a_new_client_leaves(root):
    """No warning each time."""
    put(root + b"/token")
    put(root + b"/xet/logs/xet_20260101_4711.log")
    assert divide(root).warnings == ()


def test_a_folder_of_folders_into_which_models_were_downloaded_keeps_them(root):
    """`hf download --local-dir /models/a`: somebody's files, beside a directory that is a plain entry."""
    local_dir.build(root + b"/a")
    put(root + b"/b/file")
    assert set(claims(divide(root))) == {b"b"}
    assert set(claims(divide(root, "plain"))) == {b"a", b"b"}


class TestXet:
    """What hf_xet keeps beside the hub cache."""

    @pytest.mark.parametrize("name", [b"not-an-endpoint", b"x-" + b"A" * 15, ENDPOINT + b"A"])
    def test_an_endpoint_is_told_by_its_name_and_by_what_is_in_it(self, root, name):
        put(root + b"/" + name + b"/chunk-cache/" + KEY[:2] + b"/" + KEY + b"/range")
        assert "xet" not in layouts(root)

    @pytest.mark.parametrize(
        "path", [b"zz/" + KEY, KEY[:2] + b"/short", KEY[:2] + b"/" + KEY + b"+", b"toolong/x", KEY[:2]]
    )
    def test_what_is_no_chunk_of_its_directory_is_a_stranger(self, root, path):
        """A file that is larger than the cache may be stops old clients: it was never theirs."""
        xet.build(root)
        put(root + b"/" + ENDPOINT + b"/chunk-cache/" + path + b"/f")
        stranger = ENDPOINT + b"/chunk-cache/" + path
        if path != KEY[:2]:
            assert any(stranger == each or stranger.startswith(each + b"/") for each in strangers(root))
        else:
            assert stranger + b"/f" in strangers(root)

    def test_chunks_are_the_cheapest_of_all_to_miss(self, root):
        xet.build(root)
        costs = {claim.kind: claim.cost for claim in divide(root).claims}
        assert costs == {"chunk": Cost.DERIVED, "shard": Cost.REBUILD, "partial": Cost.REBUILD}

    @pytest.mark.parametrize(
        ("age", "limit", "keep", "partial"),
        [
            (2 * HOUR, HOUR, None, True),
            (HOUR // 2, HOUR, KeepReason.PARTIAL, False),
            (NOW - LONG_AGO, None, None, False),
        ],
    )
    def test_half_a_shard_is_held_by_its_age(self, root, age, limit, keep, partial):
        put(root + b"/" + ENDPOINT + b"/shard-cache/.x.mdb_temp", mtime_ns=NOW - age)
        (claim,) = divide(root, partial_max_idle=limit).claims
        assert (claim.keep, claim.partial) == (keep, partial)


def test_an_unreadable_cache_in_a_home_is_named_and_kept(root, tmp_path, needs_root):
    """As another user sees it."""
    put(root + b"/token")
    repository(root + b"/hub")
    os.chmod(root + b"/hub", 0)
    for path in (tmp_path, *tmp_path.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            os.chmod(path, 0o755)
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            found = divide(root)
            os._exit(0 if found.claims == () and strangers(root) == {b"hub"} else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
