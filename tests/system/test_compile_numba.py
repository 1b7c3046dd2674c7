"""Real numba: a function that went is compiled again, the others are still loaded."""

import os

from tests.system.compiling import below, compiled, needs

pytestmark = needs("numba")
RESULTS = "(7, 6.0, 45)"


def test_functions_go_one_by_one_and_all_at_once_and_the_results_are_the_same(warden, root):
    """Hits and misses tell what numba found: two overloads of one function, one of the other."""
    assert compiled("numba", NUMBA_CACHE_DIR=root) == f"{RESULTS} 0 3"
    assert compiled("numba", NUMBA_CACHE_DIR=root) == f"{RESULTS} 3 0"
    warden.write()
    entries = warden.entries()
    assert {each["layout"] for each in entries.values()} == {"numba"}
    double = next(name for name in entries if "double" in name)
    assert len(entries) == 2
    assert warden("evict", os.path.join(root, double)).status == 0
    assert not [name for name in below(root) if "double" in name]
    assert compiled("numba", NUMBA_CACHE_DIR=root) == f"{RESULTS} 1 2"
    warden.policy["evict_all"] = True
    assert set(warden.once().evicted) == set(entries)
    assert below(root) == set()
    assert compiled("numba", NUMBA_CACHE_DIR=root) == f"{RESULTS} 0 3"
