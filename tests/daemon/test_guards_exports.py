"""Whether an NFS server of this machine exports a location, from the two tables that tell."""

import os
import subprocess

import pytest

from cachewarden.enforce.guards import exported_paths, is_exported
from cachewarden.mountinfo import mount_of

KERNEL = b"""# Version 1.1
# Path Client(Flags) # IPs
/srv/models\t*(rw,no_root_squash,sync,wdelay,no_subtree_check,uuid=1234:5678)
/srv/with\\040blank\t192.168.0.0/24(ro,root_squash,sync)
"""
TOLD = b"/srv/quiet\t*(rw,sync,wdelay,hide,nocrossmnt,secure,root_squash)\n"


@pytest.fixture
def tables(tmp_path):
    """Both tables, with those exports."""
    paths = os.fsencode(tmp_path / "exports"), os.fsencode(tmp_path / "etab")
    for path, text in zip(paths, (KERNEL, TOLD), strict=True):
        with open(path, "wb") as file:
            file.write(text)
    return paths


def test_paths_are_the_first_field_with_blanks_in_octal():
    assert exported_paths(KERNEL) == [b"/srv/models", b"/srv/with blank"]
    assert exported_paths(b"\n# nothing\n") == []


@pytest.mark.parametrize(
    ("path", "exported"),
    [
        (b"/srv/models", True),
        (b"/srv/models/hub", True),
        (b"/srv/with blank/hub", True),
        (b"/srv", True),  # a part of the location is
        (b"/srv/modelsother", False),
        (b"/srv/with\\040blank", False),
        (b"/srv/quiet/hub", True),  # no client asked for it lately, and one may hold something all the same
        (b"/home/anna/.accelerate", False),
    ],
)
def test_a_location_at_below_or_above_an_export_is_exported(tables, path, exported):
    mount = mount_of(b"/proc/self")  # on a mount of which nothing is exported
    assert is_exported(mount, path, tables) is exported


def test_an_export_of_everything_has_every_location_in_it(tables):
    with open(tables[0], "wb") as file:
        file.write(b"/\t*(rw,fsid=0,crossmnt)\n")
    assert is_exported(mount_of(b"/proc/self"), b"/home/anna/.accelerate", tables)


def test_without_a_server_nothing_is_exported_and_one_that_cannot_be_asked_may_export_all(tables, tmp_path):
    mount = mount_of(b"/proc/self")
    kernel, told = tables
    assert not is_exported(mount, b"/srv/quiet", (kernel + b".missing", told))
    assert is_exported(mount, b"/srv/models", (kernel, told + b".missing"))
    assert is_exported(mount, b"/home", (os.fsencode(tmp_path), told))  # a directory cannot be read


@pytest.mark.root
def test_an_export_by_way_of_a_bind_mount_is_one_of_the_same_location(tables, tmp_path, needs_root):
    """As the pseudo root of NFSv4 has them: /export/hub is /data/hub."""
    for name in ("data/hub", "data/other", "export"):
        (tmp_path / name).mkdir(parents=True)
    with open(tables[0], "wb") as file:
        file.write(os.fsencode(tmp_path / "export") + b"\t*(rw)\n")
    hub, other = os.fsencode(tmp_path / "data/hub"), os.fsencode(tmp_path / "data/other")
    mount = mount_of(b"/proc/self")
    assert not is_exported(mount, hub, tables)
    subprocess.run(["mount", "--bind", hub, tmp_path / "export"], check=True)
    try:
        assert is_exported(mount, hub, tables)
        assert is_exported(mount, hub + b"/deeper", tables)
        assert not is_exported(mount, other, tables)
    finally:
        subprocess.run(["umount", tmp_path / "export"], check=True)


@pytest.mark.root
def test_what_shares_a_mount_with_an_export_counts_as_exported_but_for_the_mount_of_everything(
    tables, tmp_path, needs_root
):
    (tmp_path / "disk").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path / "disk"], check=True)
    try:
        with open(tables[0], "wb") as file:
            file.write(os.fsencode(tmp_path / "disk/shared") + b"\t*(rw)\n")
        disk = mount_of(os.fsencode(tmp_path / "disk"))
        assert is_exported(disk, disk.point + b"/cache", tables)
        assert not is_exported(mount_of(b"/"), b"/home/anna/.accelerate", tables)
    finally:
        subprocess.run(["umount", tmp_path / "disk"], check=True)
