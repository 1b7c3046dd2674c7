"""A configuration directory of a test's own."""

from pathlib import Path


class Etc:
    """`root` is the directory that /etc/cachewarden is otherwise."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "config.d").mkdir(parents=True)

    def put(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.root / name
        path.write_text(text)
        return path
