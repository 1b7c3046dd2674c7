"""Names that are not text: they pass through measuring, output, metrics, ledger and eviction unharmed."""

import json
import os

from prometheus_client.parser import text_string_to_metric_families
from tests.system.trees import age, wait_until

NAMES = (
    b"models--\xff\xfe",
    b"a\nERROR quota daemon disabled",
    b'q"uo\\te',
    "e\u0301".encode(),
    "\u00e9".encode(),
    b" lead",
    b"-rf",
    b"x" * 255,
)


def _odd(root: str) -> None:
    for name in NAMES:
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(path)
        with open(os.path.join(path, b"f"), "wb") as file:
            file.write(b"x" * 4096)
    age(os.fsencode(root), 9)


def test_odd_names_are_entries_with_escaped_and_unique_names(warden, root):
    """Eight of them, the two forms of é apart, valid JSON, the same again after a restart."""
    _odd(root)
    assert warden.once().only["bytes_before"] == 8 * 4096
    listed = warden.entries()
    assert len(listed) == 8
    assert "models--\\xff\\xfe" in listed
    assert "a\\nERROR quota daemon disabled" in listed
    assert warden.entries() == listed
    assert json.loads(warden("status", "--json").out)["locations"][0]["entries"] == 8
    for command in (("list",), ("plan",), ("status",), ("history",)):
        shown = warden(*command)
        assert shown.status == 0, shown.err
        assert not any(line.startswith("ERROR quota") for line in shown.out.splitlines())


def test_an_odd_name_can_be_explained_and_pinned(warden, root):
    """By its true bytes, as a shell's completion gives them."""
    _odd(root)
    for name in (NAMES[0], NAMES[1], b"-rf"):
        path = os.path.join(os.fsencode(root), name)
        explained = warden("explain", "--json", "--", os.fsdecode(path))
        assert explained.status == 0, explained.err
        assert explained.json["bytes"] == 4096
    assert warden("pin", "--", os.fsdecode(os.path.join(os.fsencode(root), NAMES[0]))).status == 0
    warden.policy |= {"evict_all": True}
    done = warden.once()
    assert len(done.evicted) == 7
    assert done.kept == {"models--\\xff\\xfe": "pinned"}


def test_all_odd_names_can_go(warden, root):
    """The leading dash is no option, the 255 bytes leave room for the trash's own name."""
    _odd(root)
    warden.policy |= {"evict_all": True}
    done = warden.once()
    assert len(done.evicted) == 8
    assert os.listdir(root) == []
    history = json.loads(warden("history", "--json").out)
    assert {each["entry"] for each in history} == set(done.evicted)


def test_metrics_and_log_of_a_service_stay_readable_whatever_is_in_a_name(warden, root, tmp_path):
    """The location itself has an odd name; each event is one line."""
    odd = os.path.join(os.fsencode(tmp_path), b"cache\n\xff")
    os.mkdir(odd)
    _odd(os.fsdecode(odd))
    warden.location("cache", f"{tmp_path}/cache*", layout="plain")
    warden.policy |= {"evict_all": True}
    warden.daemon |= {"interval": "1s", "log_format": "text"}
    with warden.service() as service:
        wait_until(lambda: os.listdir(odd) == [])
        wait_until(lambda: service.metrics().get("cachewarden_evictions_total") == 8)
        wait_until(lambda: service.passes() >= 1)  # the figures of a location are those of a whole pass
        families = list(text_string_to_metric_families(service.get("/metrics")))
        assert len(families) > 20
        assert "cache\\n\\xff" in service.get("/metrics").replace("\\\\", "\\")
    assert not any(line.startswith("ERROR quota") for line in service.log.splitlines())
    assert service.log.count("quota daemon disabled") == 1
