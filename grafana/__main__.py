"""`python -m grafana`: write the dashboards as JSON beside this file; `--check` only compares."""

import argparse
import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.fleet import fleet
from grafana.location import location
from grafana.user import user

_HERE = Path(__file__).parent
_BOARDS = {"fleet": fleet, "location": location, "user": user}


def main() -> int:
    """1 when `--check` finds a file that is not what the code makes."""
    parser = argparse.ArgumentParser(prog="python -m grafana", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say what differs")
    check = parser.parse_args().check
    stale = 0
    for name, make in _BOARDS.items():
        path = _HERE / f"{name}.json"
        text = json.dumps(make().build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
        if check and (not path.exists() or path.read_text() != text):
            print(f"{path.name} is not what the code makes: run python -m grafana", file=sys.stderr)
            stale += 1
        if not check:
            path.write_text(text)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
