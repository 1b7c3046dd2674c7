"""Real Triton, compiling for a GPU that is not there: a key goes whole and comes back as the same binary."""

import os

from tests.system.compiling import below, compiled, needs
from tests.system.trees import age

pytestmark = needs("triton")


def test_a_key_goes_whole_and_is_compiled_again_to_the_same_binary(warden, root):
    """The cache's own directory stays the same one, as others have it open."""
    cache = os.path.join(root, "triton")
    binary = compiled("triton", TRITON_CACHE_DIR=cache)
    files, inode = below(cache), os.stat(cache).st_ino
    (key,) = os.listdir(cache)
    warden.policy["evict_all"] = True
    done = warden.once()
    assert done.kept == {f"triton/{key}": "in_use"}  # made a moment ago
    age(cache, 1)
    assert warden.once().evicted == [f"triton/{key}"]
    assert os.listdir(cache) == []
    assert os.stat(cache).st_ino == inode
    assert compiled("triton", TRITON_CACHE_DIR=cache) == binary
    assert below(cache) == files
