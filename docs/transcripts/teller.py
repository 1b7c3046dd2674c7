"""Telling a story: what is said between commands, the commands, and what they print. Inside the machine.

Only the standard library, as everything that runs there.
"""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Teller:
    """`steps` are paragraphs, each with the commands and outputs that follow it."""

    steps: list[dict[str, str]] = field(default_factory=list)

    def say(self, text: str) -> None:
        """A paragraph; what is run next stands below it."""
        self.steps.append({"said": text, "shown": ""})

    def show(self, command: str, printed: str) -> None:
        """A command and what it printed, as a person at a terminal sees them."""
        lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        self.steps[-1]["shown"] += f"$ {command}\n{lines}"

    def edit(self, path: str, content: str) -> None:
        """Write a file, as if by hand, and show it."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        self.show(f"sudoedit {path}", "")
        self.run(f"cat {path}")

    def run(self, command: str, status: int = 0) -> str:
        """Run a command line, show it, and see that it ends with this status. Raises AssertionError."""
        done = subprocess.run(
            ["bash", "-c", command.removeprefix("sudo ")],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}"
        self.show(command, done.stdout)
        return done.stdout


def until(what: Callable[[], object], seconds: float) -> None:
    """Wait for something. Raises AssertionError when it does not happen."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        time.sleep(0.5)
