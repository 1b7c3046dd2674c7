"""A location that is like no known cache: its children are the entries."""

import os

import pytest
from tests.daemon.layout_trees import claims, divide, link, put

from cachewarden_policies.reasons import Cost, KeepReason


def test_directories_files_and_links_are_entries_and_links_are_not_followed(tmp_path):
    """A link goes as a link: what it leads to is nobody's here."""
    root = os.fsencode(tmp_path) + b"/root"
    put(root + b"/directory/deep/file")
    put(root + b"/file")
    put(os.fsencode(tmp_path) + b"/outside/file")
    link(root + b"/link", b"../outside")
    found = claims(divide(root))
    assert set(found) == {b"directory", b"file", b"link"}
    assert all(each.paths == (name,) and each.cost is Cost.REBUILD for name, each in found.items())
    assert all(each.keep is None for each in found.values())


@pytest.mark.parametrize(
    "name", [b"caf\xe9", b"e\xcc\x81", b"\xc3\xa9", b"a\nb", b'q"', b"-rf", b" ", b"x" * 255]
)
def test_a_name_is_bytes_and_nothing_else(tmp_path, name):
    """Never decoded, never normalised."""
    put(os.fsencode(tmp_path) + b"/" + name + b"/f")
    assert divide(os.fsencode(tmp_path)).claims[0].paths == (name,)


def test_two_spellings_of_one_letter_are_two_entries(tmp_path):
    """The filesystem tells them apart, and so do we."""
    for name in ("é".encode(), "e\u0301".encode()):
        put(os.fsencode(tmp_path) + b"/" + name + b"/f")
    assert len(claims(divide(os.fsencode(tmp_path)))) == 2


def test_a_file_that_an_nfs_client_holds_open_keeps_its_entry(tmp_path):
    """Its opener may be on another machine; deeper ones are left to the look at eviction."""
    root = os.fsencode(tmp_path)
    put(root + b"/busy/.nfs000000001")
    put(root + b"/idle/file")
    put(root + b"/.nfs000000002")
    keep = {name: each.keep for name, each in claims(divide(root)).items()}
    assert keep == {b"busy": KeepReason.IN_USE, b"idle": None, b".nfs000000002": KeepReason.IN_USE}


def test_download_folders_of_a_hub_client_are_no_entries_and_what_is_beside_them_is(tmp_path):
    """`local_dir` downloads are somebody's own files, with the client's bookkeeping beside them."""
    root = os.fsencode(tmp_path)
    put(root + b"/model/weights.bin")
    put(root + b"/model/.cache/huggingface/download/weights.bin.metadata")
    put(root + b"/other/file")
    found = divide(root)
    assert set(claims(found)) == {b"other"}
    assert {each.path for each in found.foreign} == {b"model/.cache", b"model/weights.bin"}


def test_compile_cache_keys_are_each_one_entry_and_the_root_is_none(tmp_path):
    """A location that is itself a Triton cache: files of a key name each other and go together."""
    root = os.fsencode(tmp_path)
    put(root + b"/K1/__grp__k.json")
    put(root + b"/K1/k.cubin")
    put(root + b"/K2/tmp.pid_1_x/k.cubin")
    assert {name: each.paths for name, each in claims(divide(root)).items()} == {
        b"K1": (b"K1",),
        b"K2": (b"K2",),
    }
