"""A cache over its limit, under a configuration that only reports: what `enforce` is tried on."""

import os

from tests.system.command import Warden
from tests.system.trees import age, fill


def over_its_limit(warden: Warden, root: str) -> Warden:
    """Six entries of 1 MiB, each used a day later than the one before, where 4 MiB may stay."""
    for number in range(6):
        fill(f"{root}/e{number}/f", 1)
        age(f"{root}/e{number}", 40 - number)
    warden.policy |= {"max_size": "4MiB", "target_size": "100%"}
    warden.daemon["interval"] = "2s"  # what is spared on a busy machine goes with the next pass
    warden.location("cache", root, enforce=False)
    warden.write()
    return warden


def text(warden: Warden) -> str:
    """Its configuration file, line ends as they are."""
    with open(warden.file, encoding="utf-8", newline="") as file:
        return file.read()


def left(root: str) -> list[str]:
    """Names of what is there."""
    return sorted(os.listdir(root))
