"""Programs whose versions must not meet in one environment, each installed in a directory of its own.

`tests/data/clients/NAME.txt` has the locked versions. What was installed once is kept in the directory for
temporary files; a change of the list makes it be installed anew.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile

import pytest

_LISTS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "clients")


def installed(name: str) -> str:
    """The directory in which the packages of the list NAME are.

    Where the package index cannot be reached, the test fails in CI (the variable CI is set there, as
    everywhere) and is skipped elsewhere, and says why.
    """
    with open(os.path.join(_LISTS, name + ".txt"), "rb") as file:
        listed = hashlib.sha256(file.read() + sys.version.encode()).hexdigest()[:12]
    base = os.path.join(tempfile.gettempdir(), f"cachewarden-clients-{os.getuid()}")
    os.makedirs(base, mode=0o700, exist_ok=True)
    path = os.path.join(base, f"{name}-{listed}")
    with open(path + ".lock", "wb") as lock:  # tests run beside each other
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(path):
            _install(name, path)
    return path


def _install(name: str, path: str) -> None:
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as parent:
        made = os.path.join(parent, name)
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        command += ["--only-binary", ":all:", "--target", made, "-r", os.path.join(_LISTS, name + ".txt")]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            os.rename(made, path)
            return
    reason = f"the packages of tests/data/clients/{name}.txt could not be installed: {done.stderr.strip()}"
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
