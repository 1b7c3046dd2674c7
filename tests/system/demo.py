"""The demo: `python -m tests.system.demo`.

In a temporary directory it makes real caches (the real huggingface_hub client against a small local
hub; an offload folder and a training checkpoint as Accelerate writes them), runs the service on them,
crosses a limit and shows what went, what stayed and why. It works as root and without; it cleans up,
and it ends with status 1 and a sentence when something is not as it should be.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.ports import free_port
from tests.system.caches import checkpoint, configuration, hub_cache, offload_folder
from tests.system.command import PROGRAM, Service, environment, running
from tests.system.hub_endpoint import Hub
from tests.system.trees import MIB, allocated, holding_mapped

# Filesystems whose leases tell the truth; overlays and network filesystems are not among them.
TRUSTED = ("ext2/ext3", "xfs", "btrfs", "tmpfs")
SERVED, *REST = ("acme/chat-7b", "acme/old-embedder", "acme/whisperer", "acme/painter")
NEWCOMER = "acme/chat-8b"
LIMIT = 14

CONFIGURATION = """\
[daemon]
state_dir = "{base}/state"
runtime_dir = "{base}/run"
http = "127.0.0.1:{port}"
settle = "500ms"

[policies.demo]
max_size = "{limit}MiB"          # above it, the least recently used goes …
target_size = "90%"         # … until usage is back here
min_idle = "2s"             # what was used in the last two seconds stays
max_share = "60%"

[locations.models]
path = "{base}/hub"
policy = "demo"

[locations.accelerate]
path = "{base}/.accelerate"
policy = "demo"
max_size = "9MiB"
"""

METRICS = (
    "cachewarden_location_bytes",
    "cachewarden_location_limit_bytes",
    "cachewarden_location_watch_mode",
    "cachewarden_evictions_total",
    "cachewarden_evicted_bytes_total",
    "cachewarden_freed_bytes_total",
    "cachewarden_spared_total",
)


class Unexpected(Exception):
    """Something did not happen as the demo promises."""


def heading(text: str) -> None:
    """A step of the demo; coloured on a terminal."""
    _print(f"\n== {text}", "1;36")


def note(text: str) -> None:
    """What you see here."""
    _print(f"   {text}", "2")


def _print(text: str, colour: str) -> None:
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    print(text if plain else f"\x1b[{colour}m{text}\x1b[0m", flush=True)


def place() -> str | None:
    """A directory for the demo on a filesystem with honest leases; None for the usual one.

    Raises Unexpected when there is none.
    """
    for candidate in (tempfile.gettempdir(), "/dev/shm"):
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", candidate], capture_output=True, text=True, check=False
        )
        if kind.stdout.strip() in TRUSTED and os.access(candidate, os.W_OK):
            return candidate
        note(f"{candidate} is on {kind.stdout.strip()}: whether a file is in use is not known for sure there")
    raise Unexpected(
        "no temporary directory on ext4, xfs, btrfs or tmpfs: cachewarden would spare everything"
    )


def expect(happened: Callable[[], object], otherwise: str, seconds: float = 30) -> None:
    """Wait until it has happened. Raises Unexpected with the sentence `otherwise`."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise Unexpected(otherwise)
        time.sleep(0.1)


@dataclass(frozen=True)
class Stage:
    """The temporary directory with the caches, and the command that looks after them."""

    base: str
    port: int
    hub: Hub

    @property
    def command(self) -> list[str]:
        """The command with this demo's configuration; without root, as a user's own."""
        user = [] if os.geteuid() == 0 else ["--user"]
        return [PROGRAM, "--config", f"{self.base}/cachewarden.toml", *user]

    @property
    def models(self) -> str:
        """The hub cache."""
        return f"{self.base}/hub"

    @property
    def accelerate(self) -> str:
        """The Accelerate directory."""
        return f"{self.base}/.accelerate"

    def repo(self, name: str) -> str:
        """Where the client keeps a model."""
        return f"{self.models}/models--{name.replace('/', '--')}"

    def show(self, *arguments: str) -> None:
        """Run a command before everybody's eyes. Raises Unexpected when it fails."""
        _print(f"$ cachewarden {' '.join(arguments)}", "1")
        done = subprocess.run([*self.command, *arguments], env=environment(), check=False)
        if done.returncode != 0:
            raise Unexpected(f"`cachewarden {arguments[0]}` ended with status {done.returncode}")


def prepare(stage: Stage) -> None:
    """Configuration, hub, and the caches that the service finds when it starts."""
    text = CONFIGURATION.format(base=stage.base, port=stage.port, limit=LIMIT)
    with open(f"{stage.base}/cachewarden.toml", "w", encoding="utf-8") as file:
        file.write(text)
    for name in (SERVED, *REST, NEWCOMER):
        stage.hub.model(name, 3)
    checkpoint(f"{stage.accelerate}/checkpoints/checkpoint_0", 2)
    offload_folder(f"{stage.accelerate}/offload/last-week", 3)
    configuration(stage.accelerate)
    print(text)


@contextlib.contextmanager
def _serving(stage: Stage) -> Iterator[int]:
    """A process that maps the first model's weights, as an inference server does. Yields its pid."""
    hub_cache(stage.hub, stage.models, [SERVED])
    (snapshot,) = os.listdir(f"{stage.repo(SERVED)}/snapshots")
    weights = f"{stage.repo(SERVED)}/snapshots/{snapshot}/model-00001-of-00002.safetensors"
    with holding_mapped(weights) as server:
        yield server.pid


def usage(stage: Stage) -> None:
    """How full both locations are now."""
    for name, path, limit in (("models", stage.models, LIMIT), ("accelerate", stage.accelerate, 9)):
        used = allocated(path) / MIB
        bar = "#" * round(used) + "." * max(0, limit - round(used))
        note(
            f"{name:11}{used:6.1f} MiB of {limit:2} MiB  [{bar}]{'  over the limit' if used > limit else ''}"
        )


def cross_the_limits(stage: Stage, service: Service) -> None:
    """One more model and one more offload folder, then wait for the service to act."""
    expect(lambda: service.passes() >= 2, "the service did not measure its two locations")
    usage(stage)
    heading(f"A fifth model and a second offloaded model arrive: {NEWCOMER}, offload/today")
    hub_cache(stage.hub, stage.models, [NEWCOMER])
    offload_folder(f"{stage.accelerate}/offload/today", 5)
    usage(stage)
    oldest = stage.repo(REST[0])
    expect(lambda: not os.path.exists(oldest), f"{REST[0]} was not evicted though the limit is crossed")
    gone = f"{stage.accelerate}/offload/last-week"
    expect(lambda: not os.path.exists(gone), "the old offload folder was not evicted")
    heading("Both locations are back within their limits")
    usage(stage)
    note(f"{SERVED} was used least recently, but a process uses it: the next one, {REST[0]}, went instead")
    note("the training checkpoint is the oldest of all, but nothing could make it again: last-week went")


def judge(stage: Stage) -> None:
    """What must be there still. Raises Unexpected when it is not."""
    for path in (
        stage.repo(SERVED),
        *map(stage.repo, (*REST[1:], NEWCOMER)),
        f"{stage.accelerate}/checkpoints/checkpoint_0/optimizer.bin",
        f"{stage.accelerate}/default_config.yaml",
        f"{stage.accelerate}/offload/today/index.json",
    ):
        if not os.path.exists(path):
            raise Unexpected(f"{path} should have stayed")
    for path, limit in ((stage.models, LIMIT), (stage.accelerate, 9)):
        if allocated(path) > limit * MIB:
            raise Unexpected(f"{path} is still over its limit of {limit} MiB")


def explain(stage: Stage, service: Service, server: int) -> None:
    """Status, reasons and metrics."""
    heading("What the service says")
    note("both locations with usage, limit and the outcome of the last pass")
    stage.show("status")
    heading(f"Why {SERVED}, the least recently used of all, is still there")
    note(f"process {server} has its weights mapped, without a descriptor: the kernel refuses a lease")
    stage.show("explain", stage.repo(SERVED))
    heading(f"What became of {REST[0]}")
    note("when it went, why, and how much the disk got back")
    stage.show("explain", stage.repo(REST[0]))
    heading("Why the training checkpoint stays, though it is the oldest")
    stage.show("explain", f"{stage.accelerate}/checkpoints/checkpoint_0")
    heading("What Prometheus sees (an extract of /metrics)")
    lines = service.get("/metrics").splitlines()
    shown = [line for line in lines if line.startswith(METRICS) and not line.endswith(" 0")]
    print("\n".join(shown), flush=True)
    if not any(line.startswith("cachewarden_spared_total{") and "in_use" in line for line in shown):
        raise Unexpected("the metrics do not count the spared model")


def play(base: str) -> None:
    """The whole demo in `base`."""
    with Hub() as hub:
        stage = Stage(base, free_port(), hub)
        heading(f"Two caches with limits, in {base}")
        prepare(stage)
        heading(
            f"The real hub client downloads {SERVED}; a server maps its weights; three more models follow"
        )
        with _serving(stage) as server:
            hub_cache(hub, stage.models, REST)
            heading("The service starts and measures what is there")
            log = f"{base}/service.log"
            try:
                with running(stage.command, stage.port, log) as service:
                    cross_the_limits(stage, service)
                    judge(stage)
                    explain(stage, service, server)
            except (Unexpected, AssertionError):
                with open(log, encoding="utf-8") as file:
                    print(file.read(), file=sys.stderr)
                raise
        heading(f"{REST[0]} is wanted again: the client downloads it, and need not know about us")
        hub_cache(hub, stage.models, [REST[0]])


def main() -> int:
    """Play the demo in a temporary directory and remove it. 0 when all was as promised."""
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="cachewarden-demo-", dir=place()) as base:
            play(base)
    except (Unexpected, AssertionError) as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 1
    heading(f"Done in {time.monotonic() - started:.0f} s; everything is cleaned up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
