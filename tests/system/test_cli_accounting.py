"""What the command counts, and what it says that a disk gets back, on real trees and filesystems."""

import os
from pathlib import Path

import pytest
from tests.system.command import Warden
from tests.system.trees import (
    MIB,
    age,
    allocated,
    contents,
    fill,
    in_own_mounts,
    loop_mounted,
    mounted,
    wait_until,
    write,
)


def _linked(base: str) -> str:
    """Three entries: a and b are one inode that also has a link outside; c is on its own and younger."""
    root = os.path.join(base, "root")
    fill(f"{root}/a/f")
    os.mkdir(f"{root}/b")
    os.link(f"{root}/a/f", f"{root}/b/f")
    os.link(f"{root}/a/f", os.path.join(base, "outside"))
    fill(f"{root}/c/g")
    age(f"{root}/a", 9)
    age(f"{root}/b", 9)
    age(f"{root}/c", 1)
    return root


def test_hard_links_count_once_and_entries_that_only_share_an_inode_win_nothing_alone(warden, root):
    """The naive sum of this tree is 3 MiB; it occupies 2 MiB."""
    _linked(os.path.dirname(root))
    usage = warden.plan().only["bytes_before"]
    listed = warden.entries()
    assert usage == allocated(root) == 2 * MIB
    assert [listed[name]["disk_gain_bytes"] for name in "abc"] == [0, 0, MIB]
    assert [listed[name]["gain_bytes"] for name in "abc"] == [0, 0, MIB]


def test_both_names_of_an_inode_go_together_and_nothing_is_said_to_be_freed(warden, root):
    """A link outside keeps the data on the disk, so freed bytes are zero though usage falls."""
    _linked(os.path.dirname(root))
    outside = os.path.join(os.path.dirname(root), "outside")
    warden.policy |= {"max_size": "1MiB", "target_size": "100%"}
    done = warden.once()
    assert sorted(done.evicted) == ["a", "b"]
    assert done.only["bytes_after"] == allocated(root) == MIB
    assert sum(each["freed_bytes"] for each in done.only["evicted"]) == 0
    assert os.path.getsize(outside) == MIB
    assert os.stat(outside).st_nlink == 1
    assert done.status == 0


@pytest.mark.root
def test_a_need_for_free_space_takes_what_the_disk_gets_back_and_not_a_shared_inode(
    needs_root, warden, tmp_path
):
    """The oldest entries are passed over: their data has a link beyond the location."""
    with loop_mounted(str(tmp_path / "image"), str(tmp_path / "fs")):
        root = _linked(str(tmp_path / "fs"))
        warden.location("cache", root)
        space = os.statvfs(root)
        done = warden.once("--free", str(space.f_bavail * space.f_frsize + MIB // 2))
        assert done.evicted == ["c"]
        assert done.only["evicted"][0]["freed_bytes"] == MIB
        assert done.status == 0


def test_a_sparse_file_counts_with_its_blocks_and_not_with_its_length(warden, root):
    """10 GiB of length, one block of data: a limit of 1 GiB is far away."""
    os.mkdir(f"{root}/e")
    with open(f"{root}/e/w.incomplete", "wb") as file:
        file.truncate(10 * 2**30)
        file.seek(5 * 2**30)
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    fill(f"{root}/real/f")
    age(f"{root}/e", 9)
    os.sync()
    warden.policy |= {"max_size": "1GiB", "partial_max_idle": "none"}
    done = warden.once()
    assert done.only["bytes_before"] == allocated(root) == 4096 + MIB
    assert done.evicted == []
    assert done.json["outcome"] == "within_limits"


@pytest.mark.root
def test_a_deleted_file_that_is_still_open_is_not_usage_and_makes_nobody_delete_more(
    needs_root, warden, tmp_path
):
    """`df` stays low as long as the ghost is open; one entry is enough for the need, and one goes."""
    fs = str(tmp_path / "fs")
    with loop_mounted(str(tmp_path / "image"), fs):
        for number in (1, 2, 3):
            fill(f"{fs}/e{number}/f", 2)
            age(f"{fs}/e{number}", 9 - number)
        fill(f"{fs}/ghost", 8)
        with open(f"{fs}/ghost", "rb"):
            os.unlink(f"{fs}/ghost")
            os.sync()
            space = os.statvfs(fs)
            wanted = space.f_bavail * space.f_frsize + MIB
            warden.location("cache", fs)
            warden.policy |= {"min_free": str(wanted)}
            done = warden.once()
            assert done.only["bytes_before"] == 6 * MIB
            assert done.evicted == ["e1"]
            assert sorted(os.listdir(fs)) == ["e2", "e3", "lost+found"]
            warden.daemon["enforce"] = False
            with warden.service() as service:
                ghosts = "cachewarden_filesystem_deleted_open_bytes"
                wait_until(lambda: service.metrics().get(ghosts, 0) >= 8 * MIB)


@pytest.mark.root
def test_free_space_is_what_others_than_root_may_use(needs_root, warden, tmp_path):
    """ext4 reserves blocks for root: a floor between the two figures is crossed, and the pass acts."""
    fs = str(tmp_path / "fs")
    with loop_mounted(str(tmp_path / "image"), fs):
        fill(f"{fs}/old/f", 4)
        age(f"{fs}/old", 9)
        os.sync()
        space = os.statvfs(fs)
        assert space.f_bfree > space.f_bavail, "this filesystem reserves nothing; the test needs a reserve"
        between = (space.f_bfree + space.f_bavail) // 2 * space.f_frsize
        warden.location("cache", fs)
        warden.policy |= {"min_free": str(between)}
        assert warden.once().evicted == ["old"]


@pytest.mark.root
def test_other_mounts_inside_are_neither_counted_nor_emptied(needs_root, warden, root, tmp_path):
    """A bind mount of the same filesystem (equal st_dev), a tmpfs, and a link to outside."""
    victims = [str(tmp_path / f"victim{number}") for number in (1, 2)]
    for victim in victims:
        write(f"{victim}/v", "precious")
    for name in ("e", "k", "l"):
        fill(f"{root}/{name}/f")
    os.makedirs(f"{root}/e/m")
    os.makedirs(f"{root}/e/n")
    os.symlink(victims[1], f"{root}/l/link")
    with (
        mounted(["--bind", victims[0]], f"{root}/e/m"),
        mounted(["-t", "tmpfs", "-o", "size=4M", "tmpfs"], f"{root}/e/n"),
    ):
        fill(f"{root}/e/n/t")
        warden.policy |= {"evict_all": True}
        done = warden.once()
        assert done.only["bytes_before"] == 3 * MIB
        assert sorted(done.evicted) == ["k", "l"]
        assert done.kept == {"e": "mountpoint"}
        assert sorted(contents(f"{root}/e")) == [b"f", b"m/v", b"n/t"]
    assert [contents(victim) for victim in victims] == [{b"v": b"precious"}] * 2
    assert os.listdir(root) == ["e"]


@pytest.mark.root
def test_a_part_that_only_another_mount_namespace_has_mounted_keeps_its_entry(
    needs_root, warden: Warden, root, tmp_path: Path
):
    """A container with a directory of the cache mounted may read it later, though it is idle now."""
    fill(f"{root}/m/f")
    fill(f"{root}/n/f")
    warden.policy |= {"evict_all": True}
    with in_own_mounts(f"mount --bind {root}/m /mnt"):
        done = warden.once()
    assert done.evicted == ["n"]
    assert done.kept == {"m": "mountpoint"}
