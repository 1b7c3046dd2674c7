"""`python -m docs.pictures`: picture `doctor` and the man page anew, as a terminal shows them.

As root, with the Debian packages systemd-container and groff. `doctor` is run in a booted machine, beside
the service.
"""

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text
from tests.system.machine import machine

_HERE = Path(__file__).parent
_MAN_PAGE = _HERE.parent / "man" / "cachewarden.8"
_WIDTH = 88
_MAN_LINES = 70
# Fonts that are there: a picture in a page may load none.
_FONT = "font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;"
_CONFIGURATION = """
[policies.models]
extends = "preset:workstation"
[locations.huggingface-hub]
path = "/home/anna/.cache/huggingface/hub"
policy = "models"
"""
# Played inside the machine. /home has a filesystem of its own, as it often has; without access times, as
# it sometimes has.
_INSIDE = f"""
mount -t tmpfs -o size=64M,mode=755,noatime none /home
hub=/home/anna/.cache/huggingface/hub/models--acme--chat-7b
mkdir -p $hub/blobs $hub/refs $hub/snapshots/{{1..2}}
head -c 9000000 /dev/zero | tee $hub/blobs/3 > $hub/blobs/4
ln -s ../../blobs/3 $hub/snapshots/1/model.safetensors
ln -s ../../blobs/4 $hub/snapshots/2/model.safetensors
echo -n 2 > $hub/refs/main
systemctl restart cachewarden
until cachewarden status --json | grep -q '"outcome": "within_limits"'; do sleep 0.2; done
export TERM=xterm-256color COLUMNS={_WIDTH}
script -qec 'stty cols {_WIDTH}; cachewarden doctor' /doctor.txt
python3 -c 'import json; print(json.dumps(open("/doctor.txt", newline="").read()))' > /report.json
"""


def main() -> int:
    """0 once the pictures are written."""
    argparse.ArgumentParser(prog="python -m docs.pictures", description=__doc__).parse_args()
    _picture("man cachewarden", _man(), "man")
    _picture("sudo cachewarden doctor", _doctor(), "doctor")
    return 0


def _man() -> str:
    command = ("groff", "-man", "-k", "-Tutf8", f"-rLL={_WIDTH}n", str(_MAN_PAGE))
    environ = os.environ | {"GROFF_SGR": "1"}  # Debian's groff prints letters twice otherwise, for bold
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout
    return "\n".join(re.sub(r"\n{3,}", "\n\n", said).splitlines()[:_MAN_LINES])


def _doctor() -> str:
    with machine() as made:
        made.write("/etc/hostname", "box\n")
        made.prepare("useradd", "anna")
        made.prepare("make", "-C", "/src", "install")
        made.write("/etc/cachewarden/config.d/models.toml", _CONFIGURATION)
        made.write("/inside", _INSIDE, 0o755)
        report = made.boot("bash /inside")
    lines = [line for line in str(report).splitlines() if not line.startswith("Script ")]
    # What a build of a kernel is called is nobody else's.
    return re.sub(r"(Linux \d+\.\d+\.\d+)\S*", r"\1", "\n".join(lines)).strip("\n")


def _picture(command: str, said: str, name: str) -> None:
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), legacy_windows=False)
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")), no_wrap=True)
    console.print()
    console.print(Text.from_ansi(said), no_wrap=True, overflow="ignore", crop=False)
    svg = console.export_svg(title="cachewarden", unique_id=f"cw-{name}")
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: Fira Code, monospace;", _FONT, svg)
    lines = (line.rstrip() for line in svg.splitlines())
    (_HERE / f"{name}.svg").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
