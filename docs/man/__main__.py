"""`python -m docs.man`: write the man pages from the reference, beside this file; `--check` only compares."""

import argparse
import sys
from pathlib import Path

from docs.man.roff import page

_HERE = Path(__file__).parent
_REFERENCE = _HERE.parent / "reference"
_PAGES = {
    "cachewarden.8": (
        "commands.md",
        r"cachewarden \- keep AI caches inside their quotas, and never take one away that is in use",
        "\n## See also\n\n`cachewarden.toml(5)`, `systemctl(1)`, `journalctl(1)`, `fanotify(7)`\n",
    ),
    "cachewarden.toml.5": (
        "configuration.md",
        r"cachewarden.toml \- configuration of cachewarden(8)",
        "\n## See also\n\n`cachewarden(8)`, `systemd.service(5)`\n",
    ),
}


def _with_headings(text: str) -> str:
    """The headings that a man page has and a page of the reference does without: man-pages(7)."""
    title, _, rest = text.partition("\n\n")
    if not rest.startswith("```"):
        return f"{title}\n\n## Description\n\n{rest}"
    usage, fence, rest = rest.partition("\n```\n")
    return f"{title}\n\n## Synopsis\n\n{usage}{fence}\n## Description\n{rest}"


def main() -> int:
    """1 when `--check` finds a page that is not what the reference makes."""
    parser = argparse.ArgumentParser(prog="python -m docs.man", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say what differs")
    check = parser.parse_args().check
    stale = 0
    for file, (source, name, more) in _PAGES.items():
        title, _, section = file.rpartition(".")
        text = page(
            title.upper(), int(section), name, _with_headings((_REFERENCE / source).read_text()) + more
        )
        path = _HERE / file
        if check and (not path.exists() or path.read_text() != text):
            print(f"docs/man/{file} is not what the reference makes: run make docs", file=sys.stderr)
            stale += 1
        if not check:
            path.write_text(text)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
