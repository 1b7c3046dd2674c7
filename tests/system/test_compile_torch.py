"""Real `torch.compile` on a CPU: what goes is compiled again, with the same result."""

import fcntl
import os

import pytest
from tests.system.compiling import below, compiled, needs

pytestmark = [pytest.mark.accelerate, needs("torch"), pytest.mark.timeout(900)]


def test_graphs_and_code_go_one_by_one_and_all_at_once_and_the_result_is_the_same(warden, root):
    """A graph, then generated code that the graph has a copy of, then everything; locks stay.

    What is being compiled stays: Inductor locks each key while a compiler works on it.
    """
    expected = compiled("torch", TORCHINDUCTOR_CACHE_DIR=root)
    warden.write()
    entries = warden.entries()
    kinds = {"fxgraph", "aotautograd"}
    assert kinds <= {name.split("/")[0] for name in entries}
    assert {each["layout"] for each in entries.values()} == {"inductor"}
    graph = next(name for name in entries if name.startswith("fxgraph/"))
    python = next(name for name, each in entries.items() if each["cost"] == "derived")
    for victim in (graph, python):
        assert warden("evict", os.path.join(root, victim)).status == 0
        assert not os.path.exists(os.path.join(root, victim))
        assert compiled("torch", TORCHINDUCTOR_CACHE_DIR=root) == expected
        assert os.path.exists(os.path.join(root, victim))
    lock = next(name for name in below(root) if name.endswith(".lock"))
    shard = os.path.basename(lock)[1:3]
    warden.policy["evict_all"] = True
    with open(os.path.join(root, lock), "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = warden.once()
    assert done.kept[shard] == "locked"
    assert set(done.evicted) == set(entries) - {shard}
    assert warden.once().evicted == [shard]
    assert {name.split("/")[0] for name in below(root)} == {"locks"}
    assert compiled("torch", TORCHINDUCTOR_CACHE_DIR=root) == expected
    assert kinds <= {name.split("/")[0] for name in below(root)}
