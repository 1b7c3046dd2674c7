"""Training checkpoints that the administrator lets go: never under the trainer that could go back to one."""

import os
import sys

import pytest
from tests.system.caches import checkpoint
from tests.system.trees import age, process, wait_until

RUN = "run/checkpoints"
# Goes on from the newest checkpoint and saves another one, as trainers do; then computes, with nothing open.
TRAINER = """
import os, sys
os.chdir("/")
run = sys.argv[1]
with open(f"{run}/checkpoint_1/optimizer.bin", "rb") as file:
    file.read()
os.mkdir(f"{run}/checkpoint_2")
with open(f"{run}/checkpoint_2/optimizer.bin", "wb") as file:
    file.write(bytes(4096))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(warden, root) -> str:
    """Two checkpoints of an earlier run that has ended, and a policy that keeps the newest alone."""
    for number in (0, 1):
        checkpoint(f"{root}/{RUN}/checkpoint_{number}", 0.1)
    age(root, 40)
    warden.location("cache", root, evict_checkpoints={"keep_newest": 1})
    warden.policy |= {"evict_all": True}
    return f"{root}/{RUN}"


def _there(run: str) -> list[str]:
    return sorted(os.listdir(run))


def test_a_living_trainer_holds_the_whole_series_and_not_only_what_it_opened(warden, run, root):
    """The oldest it never touched; another run's goes meanwhile. All but the newest go when it ends."""
    other = f"{root}/other/checkpoints"
    for number in (0, 1):
        checkpoint(f"{other}/checkpoint_{number}", 0.1)
    age(root, 40)
    warden.daemon |= {"interval": "1s", "settle": "100ms", "enforce": False}
    with warden.service() as service:
        wait_until(lambda: service.passes() > 1)
        with process([sys.executable, "-c", TRAINER, run]):
            warden.daemon |= {"enforce": True}
            warden.write()
            service.reload()
            wait_until(lambda: _there(other) == ["checkpoint_1"])
            before = service.passes() + 2
            wait_until(lambda: service.passes() > before)
            assert _there(run) == ["checkpoint_0", "checkpoint_1", "checkpoint_2"]
        wait_until(lambda: _there(run) == ["checkpoint_2"])


@pytest.mark.parametrize("place", ["run", RUN, f"{RUN}/checkpoint_0"])
def test_a_process_that_stands_in_a_runs_folder_is_taken_for_its_trainer(warden, run, root, place):
    """Without a service, where it stands is all that shows; in the cache's own folder anybody may stand."""
    waiting = "print('ready', flush=True); import sys; sys.stdin.read()"
    command = ["env", "-C", f"{root}/{place}", sys.executable, "-c", waiting]
    with process(command):
        done = warden.once()
        assert done.kept[f"{RUN}/checkpoint_0"] in ("in_use", "live_opener")
        assert _there(run) == ["checkpoint_0", "checkpoint_1"]
    assert warden.once().evicted == [f"{RUN}/checkpoint_0"]


def test_one_that_stands_in_the_cache_itself_holds_no_run(warden, run, root):
    """A shell there would hold all runs."""
    waiting = "print('ready', flush=True); import sys; sys.stdin.read()"
    with process(["env", "-C", root, sys.executable, "-c", waiting]):
        assert warden.once().evicted == [f"{RUN}/checkpoint_0"]
