"""Measures kept over a restart: one file for each location in the state directory.

Losing one costs a walk. So nothing is synced, and what is damaged or of another version is passed over.
"""

import hashlib
import os
from contextlib import suppress
from typing import Final

from cachewarden.clock import boot_id
from cachewarden.paths import show
from cachewarden.scan import Stored, UnfitError, unpack
from cachewarden_policies.policy import DAY

_DIRECTORY: Final = b"measures"
_MAGIC: Final = b"cachewarden measure\n"
# After the magic: whether all that was seen to change is measured, and nobody has read the file since.
_LEFT_IN_ORDER: Final = b"1"
_IN_USE: Final = b"0"
_FORGET_NS: Final = 90 * DAY


class MeasureFiles:
    """The files below a state directory. Raises nothing: what went wrong is in `take_notices`."""

    def __init__(self, state_dir: bytes) -> None:
        self._directory = os.path.join(state_dir, _DIRECTORY)
        self._boot = boot_id()
        self._notices: list[str] = []

    def take_notices(self) -> list[str]:
        """Sentences for people, each given out once."""
        notices, self._notices = self._notices, []
        return notices

    @property
    def boot(self) -> str:
        """Tells this boot of the machine from all others."""
        return self._boot

    def load(self, key: str) -> tuple[Stored, bool] | None:
        """What was kept of a location, and whether its keeper left it in order. None: nothing of use.

        Reading it ends the order: from now on the location is somebody's, who may be killed.
        """
        path = self._path(key)
        try:
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._note(path, error.strerror)
            return None
        try:
            with open(fd, "rb", closefd=False) as file:
                content = file.read()
            in_order = self._take_over(fd, content)
            return unpack(_body(content)), in_order
        except OSError as error:
            self._note(path, error.strerror)
        except UnfitError as error:
            self._note(path, str(error))
        finally:
            os.close(fd)
        return None

    @staticmethod
    def _take_over(fd: int, content: bytes) -> bool:
        in_order = content[len(_MAGIC) : len(_MAGIC) + 1] == _LEFT_IN_ORDER
        try:
            os.pwrite(fd, _IN_USE, len(_MAGIC))
        except OSError:
            return False  # a disk that takes no byte: somebody after us could believe it, too
        return in_order

    def save(self, key: str, packed: bytes, *, in_order: bool) -> bool:
        """Keep what was packed for a location; whether that worked. The file before it stays if not."""
        path = self._path(key)
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            fd = os.open(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            try:
                with open(fd, "wb") as file:
                    file.write(_MAGIC + (_LEFT_IN_ORDER if in_order else _IN_USE))
                    file.write(packed)
                os.rename(path + b".new", path)
            except OSError:
                with suppress(OSError):
                    os.unlink(path + b".new")
                raise
        except OSError as error:
            self._notices.append(f"{show(path)} cannot be written: {error.strerror}, skipping")
            return False
        return True

    def prune(self, now_ns: int) -> None:
        """Remove what nobody has read or written for a quarter of a year; `now_ns` is the wall clock."""
        with suppress(OSError), os.scandir(self._directory) as files:
            for file in files:
                with suppress(OSError):
                    if now_ns - file.stat(follow_symlinks=False).st_mtime_ns > _FORGET_NS:
                        os.unlink(file.path)

    def leave_in_order(self, key: str) -> None:
        """What was saved last for a location is still all that is known of it."""
        with suppress(OSError):
            fd = os.open(self._path(key), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.pwrite(fd, _LEFT_IN_ORDER, len(_MAGIC))
            finally:
                os.close(fd)

    def _path(self, key: str) -> bytes:
        name = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return os.path.join(self._directory, name.encode())

    def _note(self, path: bytes, what: str | None) -> None:
        self._notices.append(f"{show(path)}: {what}: its location is measured anew, skipping")


def _body(content: bytes) -> bytes:
    if not content.startswith(_MAGIC):
        raise UnfitError("it is damaged")
    return content[len(_MAGIC) + 1 :]
