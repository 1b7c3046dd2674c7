"""Running real compilers for the tests, each as a process of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest
from tests.system.command import environment

PROGRAM = os.path.join(os.path.dirname(__file__), "compile_program.py")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


# Half of the time would go into programs that Inductor compiles to see which instructions the compiler knows.
SURE = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip where the tool is not installed."""
    return pytest.mark.skipif(
        importlib.util.find_spec(tool) is None,
        reason=f"{tool} is not installed (requirements/accelerate.txt; CI installs it)",
    )


def compiled(tool: str, *arguments: str, **environ: str) -> str:
    """What the program printed. Raises AssertionError with its own words when it failed."""
    done = subprocess.run(
        [sys.executable, PROGRAM, tool, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=environment() | SURE | {"PYTHONPATH": ROOT, "TRITON_DEFAULT_FP_FUSION": "1"} | environ,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def below(root: str) -> set[str]:
    """Every file in a cache, relative to it."""
    return {
        os.path.relpath(os.path.join(here, name), root) for here, _, names in os.walk(root) for name in names
    }
