"""Other users of this machine, for tests: by their number alone, without an account."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.system.command import PROGRAM, environment

# As that user, with everything imported before: the interpreter itself need not be readable for him.
_BECOME = """
import os, sys
uid, groups = int(sys.argv[1]), [int(each) for each in sys.argv[2].split(",") if each]
os.setgroups(groups); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid); os.umask(0o022)
"""
_MAKE = (
    _BECOME
    + """
path, size, mode = os.fsencode(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5], 8)
os.mkdir(path)
with open(path + b"/f", "wb") as file:
    file.write(b"x" * size)
os.utime(path + b"/f", (1.7e9, 1.7e9)); os.utime(path, (1.7e9, 1.7e9)); os.chmod(path, mode)
"""
)
_ASK = (
    """
import http.client, json, socket, sys
import encodings.idna
"""
    + _BECOME
    + """
at, method, path, body = sys.argv[3:]
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(at)
connection = Connection("localhost")
connection.request(method, path, body or None)
answer = connection.getresponse()
print(json.dumps([answer.status, json.loads(answer.read())]))
"""
)


@contextlib.contextmanager
def ground() -> Iterator[str]:
    """A directory that other users reach (pytest's own is closed to them), on a filesystem of its own: what
    others do on this machine is not seen there.
    """
    with tempfile.TemporaryDirectory(prefix="cachewarden-") as made:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", made], check=True)
        try:
            yield made
        finally:
            subprocess.run(["umount", "-l", made], check=True)


@dataclass(frozen=True)
class Answer:
    """An HTTP status and what came with it; `allow` is that header."""

    status: int
    document: object
    allow: str | None = None

    @property
    def entries(self) -> list[str]:
        """Names of entries in a list."""
        return sorted(each["entry"] for each in self.document)


@dataclass
class User:
    """A user by number; `groups` are further ones."""

    uid: int
    groups: tuple[int, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)

    def make(self, path: str | bytes, size: int = 1 << 20, mode: str = "755") -> None:
        """A directory with one file, made by a process that ends."""
        self._run(_MAKE, os.fsdecode(path), str(size), mode)

    def ask(self, socket: str, method: str, path: str, body: object = None) -> Answer:
        """One request at a control socket, with a body of JSON or, for bytes and text, as it is."""
        text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
        return Answer(*json.loads(self._run(_ASK, socket, method, path, text)))

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`cachewarden …` as this user, whatever its exit status."""
        return self._process([*self.prefix, PROGRAM, *arguments])

    @property
    def prefix(self) -> list[str]:
        """What before a command makes it this user's."""
        groups = f"--groups={','.join(map(str, self.groups))}" if self.groups else "--clear-groups"
        # He may read what he could not otherwise: an interpreter that lies in root's home, in tests.
        reading = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", groups, *reading]

    def _run(self, code: str, *arguments: str) -> str:
        groups = ",".join(map(str, self.groups))
        done = self._process([sys.executable, "-c", code, str(self.uid), groups, *arguments])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _process(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/",
            env=environment() | self.environ,
            check=False,
        )
