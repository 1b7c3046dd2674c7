"""What a unit that was hardened too far does to the service, told by the service itself."""

import subprocess
import sys

from cachewarden.kernel.capabilities import NUMBERS, effective
from cachewarden.service.blinding import hidden

_HIDDEN = "import sys; from cachewarden.service.blinding import hidden; print(hidden([sys.argv[1].encode()]))"
_BLINDS = "from cachewarden.service.blinding import blinds; print(blinds())"

_RELOADED = """
import sys
from cachewarden.service.lookout import Lookout
from cachewarden.settings import load
def settings():
    return load([sys.argv[1].encode()], environ={"HOME": "/root"})
lookout = Lookout(settings())
lookout.look(20)
before = lookout.hidden
lookout.follow(settings())
print(before, lookout.hidden == before)
"""


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def behind(directory, pattern, code=_HIDDEN):
    """What is said where another directory was mounted over this one, for us alone and not for process 1."""
    mount = 'unshare -m sh -c "mount -t tmpfs none \\"\\$0\\" && exec \\"\\$@\\"" "$0" "$@"; true'
    first = ("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", mount, str(directory))
    return said(*first, sys.executable, "-c", code, pattern)


def test_a_directory_that_only_we_see_otherwise_is_named(needs_root, tmp_path):
    (tmp_path / "home").mkdir()
    pattern = f"{tmp_path}/home/*/.cache"
    assert hidden([pattern.encode()]) == []
    assert f"{tmp_path}/home is hidden from the service" in behind(tmp_path / "home", pattern)


def test_so_is_one_that_is_not_there_for_us(needs_root, tmp_path):
    (tmp_path / "home" / "cache").mkdir(parents=True)
    assert f"{tmp_path}/home/cache is hidden" in behind(tmp_path / "home", f"{tmp_path}/home/cache")


def test_over_a_reload_it_is_named_until_it_was_looked_at_again(needs_root, tmp_path):
    """A pass that begins in between would evict."""
    (tmp_path / "cache").mkdir()
    config = tmp_path / "config.toml"
    config.write_text(f'[locations.cache]\npath = "{tmp_path}/cache"\n')
    answer = behind(tmp_path / "cache", str(config), _RELOADED)
    assert f"{tmp_path}/cache is hidden" in answer
    assert answer.endswith("True\n")


def test_what_nobody_has_is_merely_missing(needs_root, tmp_path):
    assert hidden([f"{tmp_path}/never/was".encode()]) == []


def test_a_missing_capability_is_named_and_one_with_a_weaker_form_is_not(needs_root):
    assert said(sys.executable, "-c", _BLINDS) == "[]\n"
    without = ("setpriv", "--bounding-set", "-lease,-sys_admin", "--inh-caps", "-lease,-sys_admin")
    answer = said(*without, sys.executable, "-c", _BLINDS)
    assert "lacks CAP_LEASE:" in answer
    assert "SYS_ADMIN" not in answer


def test_users_that_are_not_those_of_the_machine_are_noticed(needs_root):
    assert "other users than there are" in said("unshare", "-Ur", sys.executable, "-c", _BLINDS)


def test_root_has_all_capabilities_that_we_know(needs_root):
    assert effective() == NUMBERS.keys()
