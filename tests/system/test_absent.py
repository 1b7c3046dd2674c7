"""A cache that its user deletes, with and without a running service: no error, and no figures of what was."""

import json
import os
import shutil
import time


def over_its_limit(warden, root):
    """A location that is over its limit, and out of which nothing may go."""
    warden.policy |= {"max_size": "1MiB", "protect": ["*"]}
    os.mkdir(os.path.join(root, "e"))
    with open(os.path.join(root, "e", "f"), "wb") as file:
        file.write(os.urandom(2 << 20))


def nothing_is_said_of_what_was(warden):
    (shown,) = json.loads(warden("status", "--json").out)["locations"]
    assert (shown["bytes"], shown["entries"], shown["over_limit_since"]) == (None, None, None)
    assert (shown["available"], shown["outcome"]) == (False, None)
    text = warden("status").out
    assert "not there" in text
    assert "over its limit" not in text
    assert "unavailable" not in text


def test_status_forgets_the_figures_of_a_deleted_cache(warden, root):
    over_its_limit(warden, root)
    assert warden.once().only["outcome"] == "short"
    (before,) = json.loads(warden("status", "--json").out)["locations"]
    assert before["bytes"] > 1 << 20
    assert before["over_limit_since"] is not None
    shutil.rmtree(root)
    nothing_is_said_of_what_was(warden)
    assert warden.once().json["outcome"] == "within_limits"


def test_a_running_service_forgets_them_too(warden, root):
    over_its_limit(warden, root)
    warden.daemon |= {"settle": "200ms"}
    place = f'location="cache",path="{root}"'
    with warden.service() as service:
        end = time.monotonic() + 30
        while service.metrics().get(f'cachewarden_location_outcome{{{place},outcome="short"}}') != 1:
            assert time.monotonic() < end
            time.sleep(0.1)
        shutil.rmtree(root)
        while service.metrics().get(f'cachewarden_location_outcome{{{place},outcome="within_limits"}}') != 1:
            assert time.monotonic() < end
            time.sleep(0.1)
        page = service.metrics()
        assert page[f"cachewarden_location_available{{{place}}}"] == 0
        for gone in ("bytes", "files", "entries", "shortfall_bytes", "over_limit_since_timestamp_seconds"):
            assert f"cachewarden_location_{gone}" not in page
        nothing_is_said_of_what_was(warden)
