"""The installed `cachewarden` command as a process, with a configuration of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.ports import free_port

PROGRAM = os.path.join(os.path.dirname(sys.executable), "cachewarden")

# What the cases assume: stamps that a test can set decide alone, and no brake interferes.
PLAIN_POLICY: Mapping[str, object] = {"min_idle": "0s", "max_share": "100%", "order": "lru"}


@dataclass(frozen=True)
class Run:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        """What it printed, which has to be one JSON value and nothing else."""
        assert self.out, f"nothing was printed; exit status {self.status}: {self.err}"
        return json.loads(self.out)

    @property
    def only(self) -> dict:
        """The part of the one location of a report."""
        (location,) = self.json["locations"]
        return location

    @property
    def evicted(self) -> list[str]:
        """Names of the evicted entries (or of those that would go), in order."""
        location = self.only
        return [each["entry"] for each in location.get("evicted", location.get("would_evict"))]

    @property
    def kept(self) -> dict[str, str]:
        """Names of the spared (or, in a plan, kept) entries with the reason."""
        location = self.only
        return {each["entry"]: each["reason"] for each in location.get("spared", location.get("kept"))}


def _toml(value: object) -> str:
    """A TOML value; JSON's strings, numbers and booleans are TOML's too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


@dataclass
class Warden:
    """A configuration file in `base` with its own state, and the command that uses it.

    Every location takes the policy `plain`, whose keys are `policy`.
    """

    base: str
    policy: dict[str, object] = field(default_factory=dict)
    locations: dict[str, dict[str, object]] = field(default_factory=dict)
    daemon: dict[str, object] = field(default_factory=dict)
    state: str = ""

    @property
    def file(self) -> str:
        """The configuration file."""
        return os.path.join(self.base, "cachewarden.toml")

    @property
    def state_dir(self) -> str:
        """Where the ledger and the pins live."""
        return self.state or os.path.join(self.base, "state")

    @property
    def runtime_dir(self) -> str:
        """Where the locks on locations live."""
        return os.path.join(self.base, "run")

    def location(self, name: str, path: str, **keys: object) -> None:
        """Add a location, or replace it."""
        self.locations[name] = {"path": path, "policy": "plain", "ignore_ctime": True, **keys}

    def write(self) -> None:
        """Write the configuration as it is now."""
        os.makedirs(self.base, exist_ok=True)
        settings = {"state_dir": self.state_dir, "runtime_dir": self.runtime_dir, "http": "", **self.daemon}
        sections = {"daemon": settings, "policies.plain": {**PLAIN_POLICY, **self.policy}}
        sections |= {f"locations.{name}": keys for name, keys in self.locations.items()}
        lines = []
        for name, keys in sections.items():
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in keys.items())]
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines[1:], ""]))

    def __call__(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Run:
        """Run a command to its end, whatever its exit status; `environ` is added to the environment."""
        if not os.path.exists(self.file):
            self.write()
        done = subprocess.run(
            [PROGRAM, "--config", self.file, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment() | dict(environ or {}),
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def once(self, *arguments: str) -> Run:
        """One pass, under the configuration as it is now."""
        self.write()
        return self("once", "--json", *arguments)

    def plan(self, *arguments: str) -> Run:
        """A plan, under the configuration as it is now."""
        self.write()
        return self("plan", "--json", *arguments)

    def entries(self) -> dict[str, dict]:
        """What `list` says, by entry."""
        return {each["entry"]: each for each in json.loads(self("list", "--json").out)}

    def service(self) -> contextlib.AbstractContextManager["Service"]:
        """`cachewarden run` with its HTTP side on a free port; ended by SIGTERM when the block ends."""
        port = free_port()
        self.daemon["http"] = f"127.0.0.1:{port}"
        self.write()
        return running([PROGRAM, "--config", self.file], port, os.path.join(self.base, "service.log"))


@dataclass
class Service:
    """A running `cachewarden run`."""

    child: subprocess.Popen[bytes]
    url: str
    log_file: str

    @property
    def log(self) -> str:
        """All that it has logged so far."""
        with open(self.log_file, encoding="utf-8") as file:
            return file.read()

    def get(self, path: str) -> str:
        """The body of a page. Raises URLError when the service does not answer."""
        with urllib.request.urlopen(self.url + path, timeout=10) as response:
            return response.read().decode("utf-8")

    def wait_ready(self) -> None:
        """Wait until /readyz says yes. Raises AssertionError with the log when it ends before."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            assert self.child.poll() is None, f"the service ended with {self.child.returncode}:\n{self.log}"
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                self.get("/readyz")
                return
            time.sleep(0.05)
        raise AssertionError(f"the service is not ready after 30 s:\n{self.log}")

    def metrics(self) -> dict[str, float]:
        """Sum of each metric over its labels, plus each single series by its full text."""
        found: dict[str, float] = {}
        for line in self.get("/metrics").splitlines():
            if line and not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                name = series.partition("{")[0]
                found[series] = float(value)
                if name != series:
                    found[name] = found.get(name, 0) + float(value)
        return found

    def passes(self) -> int:
        """How many passes it has finished."""
        return int(self.metrics().get("cachewarden_passes_total", 0))

    def reload(self) -> None:
        """SIGHUP."""
        self.child.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """SIGTERM, and the exit status. Kills it by its pid when it does not leave within 15 s."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(15)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                raise AssertionError(f"the service did not leave within 15 s:\n{self.log}") from None
        return self.child.returncode


@contextlib.contextmanager
def running(command: Sequence[str], port: int, log: str) -> Iterator[Service]:
    """`COMMAND run`, ready to answer on `port`; its output is appended to the file `log`."""
    with open(log, "ab") as file:
        child = subprocess.Popen(
            [*command, "run"], stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment()
        )
    service = Service(child, f"http://127.0.0.1:{port}", log)
    try:
        service.wait_ready()
        yield service
    finally:
        service.stop()


def environment() -> dict[str, str]:
    """Ours without variables that change what the command reads or how it prints."""
    hidden = ("CACHEWARDEN_", "NOTIFY_SOCKET", "WATCHDOG_", "JOURNAL_STREAM", "FORCE_COLOR", "COLUMNS")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
