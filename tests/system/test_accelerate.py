"""Real Accelerate on a real `.accelerate` directory: offload, checkpoint and compiled kernels."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.system.caches import configuration
from tests.system.compiling import SURE

pytestmark = [
    pytest.mark.accelerate,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None or importlib.util.find_spec("accelerate") is None,
        reason="torch and accelerate are not installed (requirements/accelerate.txt; CI installs them)",
    ),
]
PROGRAM = os.path.join(os.path.dirname(__file__), "accelerate_program.py")
PASSES = 50


def _start(cache: str, task: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, PROGRAM, cache, task],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | SURE,
    )


def _output(program: subprocess.Popen[str]) -> str:
    """What the program printed until its end. Raises AssertionError with its own words when it failed."""
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    return out


def _run(cache: str, task: str) -> str:
    return _output(_start(cache, task))


class Offloaded:
    """A living process with a model whose weights are on the disk."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child

    def forward(self) -> str:
        """One forward pass, which reads every weight from the disk again."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write("forward\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()


@contextlib.contextmanager
def _offloaded(cache: str) -> Iterator[Offloaded]:
    child = subprocess.Popen(
        [sys.executable, PROGRAM, cache, "offload"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        yield Offloaded(child)
        child.communicate(timeout=30)
    finally:
        child.kill()
        child.communicate()


def test_an_offloaded_model_works_through_fifty_passes_and_goes_when_it_is_over(warden, tmp_path):
    """`evict_all` with a guard of ten minutes, then with one of a second after the process has exited.

    Accelerate opens each weight anew for every forward pass and closes it again, so between two
    passes nothing at all shows that the folder is in use but the time of its last use. The checkpoint
    and the user's configuration stay through everything.
    """
    cache = str(tmp_path / ".accelerate")
    os.mkdir(cache)
    configuration(cache)
    warden.location("cache", cache)
    weight = _run(cache, "checkpoint").strip()
    warden.policy |= {"evict_all": True, "min_idle": "10m"}
    warden.daemon["interval"] = "1h"
    with _offloaded(cache) as model, warden.service() as service:
        compiling = _start(cache, "compile")
        end = service.passes() + PASSES
        forwards = 0
        while service.passes() < end or compiling.poll() is None:
            service.child.send_signal(signal.SIGUSR1)
            assert model.forward() == "same"
            forwards += 1
            time.sleep(0.05)
        assert forwards >= PASSES
        assert service.metrics().get("cachewarden_evictions_total", 0) == 0
        assert _output(compiling).strip() == "shape (1, 256)"
    time.sleep(1.5)
    warden.policy["min_idle"] = "1s"
    done = warden.once()
    assert "offload/tiny" in done.evicted
    assert any(name.startswith("inductor/fxgraph/") for name in done.evicted)
    assert not os.path.exists(f"{cache}/offload/tiny")
    assert done.kept["checkpoints/checkpoint_0"] == "protected"
    assert os.path.exists(f"{cache}/default_config.yaml")
    assert _run(cache, "resume").strip() == weight


def test_accelerate_starts_again_where_its_folder_went(warden, tmp_path):
    """The next program finds nothing of ours in its way: it offloads as on a new disk."""
    cache = str(tmp_path / ".accelerate")
    os.mkdir(cache)
    warden.location("cache", cache)
    warden.policy |= {"evict_all": True}
    for _ in range(2):
        with _offloaded(cache) as model:
            assert model.forward() == "same"
        done = warden.once()
        assert done.evicted == ["offload/tiny"]
        assert not os.path.exists(f"{cache}/offload/tiny")
