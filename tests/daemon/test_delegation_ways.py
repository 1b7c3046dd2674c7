"""A tool goes by paths and by its own configuration: neither may lead it anywhere but to the cache."""

import os
import pwd
from pathlib import Path

import pytest
from tests.daemon.delegating import me, script

from cachewarden.evict.tools import Account, RefusedError, ToolsCache, prune
from cachewarden.evict.tools.account import check_way

NOBODY = pwd.getpwnam("nobody")


class TestTheWay:
    """A tool goes by the path of its cache, so that others must not decide where that leads."""

    @pytest.fixture
    def root(self, tmp_path):
        """A cache two directories down."""
        root = tmp_path / "between" / "cache"
        root.mkdir(parents=True)
        return root

    def check(self, root: Path, path: Path, account: Account | None = None) -> None:
        """The path, of the cache at `root`."""
        fd = os.open(root, os.O_RDONLY)
        try:
            check_way(fd, os.fsencode(path), account or me(path))
        finally:
            os.close(fd)

    def test_his_own_and_the_systems_directories_are_fine(self, root, tmp_path):
        (tmp_path / "link").symlink_to("between/../between")
        self.check(root, root)
        self.check(root, tmp_path / "link" / "cache")

    def test_a_directory_on_the_way_in_which_others_can_rename_is_not(self, root):
        root.parent.chmod(0o777)
        with pytest.raises(RefusedError, match="can put something else"):
            self.check(root, root)
        root.parent.chmod(0o1777)
        self.check(root, root)

    def test_a_directory_of_somebody_else_on_the_way_is_not(self, needs_root, root):
        os.chown(root.parent, NOBODY.pw_uid, -1)
        with pytest.raises(RefusedError, match="can put something else"):
            self.check(root, root)
        self.check(root, root, me(root, uid=NOBODY.pw_uid))

    def test_a_link_behind_a_link_counts_and_so_does_whose_it_is(self, needs_root, root, tmp_path):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "second").symlink_to(root.parent)
        (tmp_path / "first").symlink_to(elsewhere / "second")
        self.check(root, tmp_path / "first" / "cache")
        os.chown(elsewhere / "second", NOBODY.pw_uid, -1, follow_symlinks=False)
        with pytest.raises(RefusedError, match="can put something else"):
            self.check(root, tmp_path / "first" / "cache")
        os.chown(elsewhere / "second", 0, -1, follow_symlinks=False)
        elsewhere.chmod(0o777)
        with pytest.raises(RefusedError, match="can put something else"):
            self.check(root, tmp_path / "first" / "cache")

    def test_another_directory_of_that_name_is_not_pruned(self, root):
        aside = root.with_name("aside")
        root.rename(aside)
        with pytest.raises(RefusedError, match="No such file"):
            self.check(aside, root)
        root.mkdir()
        with pytest.raises(RefusedError, match="another directory now"):
            self.check(aside, root)

    def test_links_in_a_circle_lead_nowhere(self, root, tmp_path):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(RefusedError, match="symbolic links"):
            self.check(root, tmp_path / "a")


class TestAConda:
    """It cleans all directories that it knows of, and says which these are."""

    def prune(self, base: Path, said: str) -> str:
        """What a conda that answers so was then asked to do."""
        root = base / "pkgs"
        root.mkdir()
        script(
            base / "home/bin/conda",
            f'case "$1" in config) echo a warning; echo \'{said}\';; *) echo "$@" > {base}/calls;; esac',
        )
        fd = os.open(root, os.O_RDONLY)
        try:
            prune(ToolsCache(fd, os.fsencode(root), "conda"), lambda: False, lambda _uid: me(base / "home"))
        finally:
            os.close(fd)
        return (base / "calls").read_text()

    def test_is_run_where_it_means_this_cache_alone(self, tmp_path):
        said = f'{{"pkgs_dirs": ["{tmp_path}/pkgs"]}}'
        assert self.prune(tmp_path, said) == "clean --packages --tarballs --yes\n"

    @pytest.mark.parametrize("said", ['{"pkgs_dirs": ["%s", "/home/other"]}', "{}", "", "[]", "{" * 10_000])
    def test_is_not_run_where_it_means_more_or_says_nothing(self, tmp_path, said):
        with pytest.raises(RefusedError, match="may prune more"):
            self.prune(tmp_path, said.replace("%s", f"{tmp_path}/pkgs"))
        assert not (tmp_path / "calls").exists()
