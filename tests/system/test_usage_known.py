"""The service knows its locations' usage without walking them: over changes, bursts and restarts."""

import os
import subprocess
import sys
import time

import pytest
from tests.system.test_service import make, until

pytestmark = pytest.mark.root

MIB = 1 << 20


@pytest.fixture
def service_of(warden, needs_root):
    warden.daemon |= {"interval": "1h", "settle": "100ms"}
    return warden


def du(root) -> int:
    """Allocated bytes of all files below a directory."""
    return sum(
        os.lstat(os.path.join(here, name)).st_blocks * 512
        for here, _, names in os.walk(root)
        for name in names
    )


def elsewhere(code: str, *arguments) -> None:
    subprocess.run([sys.executable, "-c", f"import os, sys\n{code}", *map(str, arguments)], check=True)


def agrees(service, root) -> bool:
    """Whether the service shows what is there, verified."""
    shown = service.metrics()
    figures = shown.get("cachewarden_location_bytes"), shown.get("cachewarden_location_usage_complete")
    return figures == (du(root), 1)


def test_a_restart_over_an_unchanged_tree_shows_its_figures_and_verifies_them(service_of, root):
    for number in range(20):
        make(root, f"e{number}")
    with service_of.service() as service:
        until(lambda: agrees(service, root))
    with service_of.service() as service:
        until(lambda: agrees(service, root))
        assert "figures of the last run, to be verified" in service.log


def test_what_grew_in_place_while_the_service_was_down_is_in_the_figures_soon_after(service_of, root):
    make(root, "e")
    make(root, "other")
    time.sleep(2.1)  # until then, the directories' times prove nothing, and it would be looked at anyway
    with service_of.service() as service:
        until(lambda: agrees(service, root))
    before = os.stat(os.path.join(root, "e")).st_mtime_ns
    elsewhere("open(sys.argv[1], 'ab').write(os.urandom(3 << 20))", os.path.join(root, "e", "f"))
    assert os.stat(os.path.join(root, "e")).st_mtime_ns == before
    with service_of.service() as service:
        until(lambda: agrees(service, root))


def test_nothing_is_evicted_on_figures_that_nobody_verified(service_of, root):
    for number in range(4):
        make(root, f"e{number}", days=20 - number)
    with service_of.service() as service:
        until(lambda: agrees(service, root))
    elsewhere("os.truncate(sys.argv[1], 0)", os.path.join(root, "e0", "f"))  # no directory's times tell
    service_of.policy |= {"max_size": "3500KiB", "target_size": "3500KiB"}  # as it was it would be too much
    with service_of.service() as service:
        until(lambda: agrees(service, root))
        until(lambda: service.passes() >= 1)
        assert sorted(os.listdir(root)) == ["e0", "e1", "e2", "e3"]


def test_bursts_of_all_kinds_are_in_the_figures_without_a_full_walk(service_of, root):
    for number in range(20):
        make(root, f"e{number}", mib=0)
    with service_of.service() as service:
        until(lambda: agrees(service, root))
        elsewhere(
            """
root = sys.argv[1]
for number in range(1000):
    home = f"{root}/burst{number % 10}/{number % 7}"
    os.makedirs(home, exist_ok=True)
    with open(f"{home}/{number}", "wb") as file:
        file.write(bytes(5000))
""",
            root,
        )
        until(lambda: agrees(service, root))
        elsewhere(
            """
import shutil
root = sys.argv[1]
os.rename(f"{root}/burst1", f"{root}/burst2/1/inner")
os.rename(f"{root}/burst3/3", f"{root}/e3/moved")
os.link(f"{root}/burst4/4/4", f"{root}/e4/link") if os.path.exists(f"{root}/burst4/4/4") else None
shutil.rmtree(f"{root}/burst5")
for number in range(20):
    with open(f"{root}/e{number}/f", "ab") as file:
        file.write(os.urandom(10000))
""",
            root,
        )
        names = {}
        for here, _, files in os.walk(root):
            for name in files:
                found = os.lstat(os.path.join(here, name))
                names[found.st_ino] = found.st_blocks * 512
        until(lambda: service.metrics().get("cachewarden_location_bytes") == sum(names.values()))
