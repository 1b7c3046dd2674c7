"""A glob with many matches: as many series for each, whatever is in it, and none for those that are gone."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter

from tests.system.trees import wait_until

HOMES = 60
# By a process that ends. Every third home has fifty entries, the others one.
MAKE = """
import os, sys
for number in range(int(sys.argv[2])):
    for entry in range(50 if number % 3 == 0 else 1):
        path = f"{sys.argv[1]}/u{number}/cache/e{entry}"
        os.makedirs(path)
        with open(path + "/f", "wb") as file:
            file.write(b"x")
"""


def series(service):
    """How many lines the page has for each path of the location."""
    page = service.get("/metrics")
    return Counter(re.findall(r'^\w+{location="homes",path="([^"]*)"', page, re.MULTILINE))


def test_each_match_has_as_many_series_and_those_that_go_leave_none(warden, tmp_path):
    homes = f"{tmp_path}/homes"
    subprocess.run([sys.executable, "-c", MAKE, homes, str(HOMES)], check=True)
    warden.locations.clear()
    warden.location("homes", f"{homes}/*/cache")
    warden.policy |= {"max_size": "1GiB"}
    with warden.service() as service:
        entries = HOMES // 3 * 50 + HOMES - HOMES // 3
        wait_until(lambda: service.metrics().get("cachewarden_location_entries") == entries, 120)
        found = series(service)
        assert len(found) == HOMES
        assert len(set(found.values())) == 1
        kept = [f"{homes}/u{number}/cache" for number in range(0, HOMES, 10)]
        for number in range(HOMES):
            if number % 10:
                shutil.rmtree(f"{homes}/u{number}")
        wait_until(lambda: sorted(series(service)) == sorted(kept), 60)
        assert set(series(service).values()) == set(found.values())
        os.rename(f"{homes}/u0", f"{homes}/v0")  # one more goes, and one comes
        wait_until(lambda: f"{homes}/v0/cache" in series(service), 60)
        wait_until(lambda: sorted(series(service)) == sorted([*kept[1:], f"{homes}/v0/cache"]), 60)
