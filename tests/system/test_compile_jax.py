"""Real JAX on a CPU: it goes on writing after we took something, with and without a limit of its own."""

import fcntl
import os

import pytest
from tests.system.compiling import below, compiled, needs

pytestmark = needs("jax")
MIB = 1 << 20


def run(root: str, factor: int, limit: int | None = None) -> str:
    """A program whose functions depend on `factor`."""
    environ = {} if limit is None else {"JAX_LIMIT": str(limit)}
    return compiled("jax", str(factor), JAX_COMPILATION_CACHE_DIR=root, **environ)


def executables(root: str) -> set[str]:
    return {name for name in below(root) if name.endswith("-cache")}


@pytest.mark.parametrize("limit", [None, 10 * MIB])
def test_executables_go_one_by_one_and_all_at_once_and_jax_goes_on_writing(warden, root, limit):
    """The same result, the same files again, and new ones for a new function."""
    expected = run(root, 3, limit)
    files = below(root)
    assert (".lockfile" in files) == (limit is not None)
    warden.write()
    entries = warden.entries()
    assert set(entries) == executables(root)
    assert {each["layout"] for each in entries.values()} == {"jax"}
    victim = next(name for name in entries if "lambda" in name)
    assert warden("evict", os.path.join(root, victim)).status == 0
    assert not {name for name in below(root) if name.startswith(victim.removesuffix("-cache"))}
    assert run(root, 3, limit) == expected
    assert below(root) == files
    assert run(root, 5, limit) != expected
    assert len(executables(root)) > len(entries)
    warden.policy["evict_all"] = True
    warden.once()
    assert below(root) <= {".lockfile"}
    assert run(root, 3, limit) == expected
    assert below(root) == files


def test_a_cache_that_jax_gave_up_is_told_and_works_again_once_it_is_empty(warden, root):
    """Filled without a limit, then used with one: JAX misses the times and writes nothing any more."""
    run(root, 3)
    before = executables(root)
    run(root, 5, 10 * MIB)
    assert executables(root) == before
    (warning,) = warden.once().only["warnings"]
    assert "JAX writes nothing" in warning
    warden.policy["evict_all"] = True
    assert set(warden.once().evicted) == before
    run(root, 5, 10 * MIB)
    assert executables(root)


def test_while_jax_holds_its_lock_nothing_goes(warden, root):
    """It reads, writes and evicts under this lock."""
    run(root, 3, 10 * MIB)
    warden.policy["evict_all"] = True
    with open(os.path.join(root, ".lockfile"), "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = warden.once()
    assert done.evicted == []
    assert set(done.kept.values()) == {"locked"}
