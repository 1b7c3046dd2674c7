"""Caches of compilers: what goes together, what costs what, what is stale, whose locks are held."""

import json
import os
import re
import shutil
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_fixtures import flashinfer, inductor, jax, numba, torch_extensions, triton, vllm
from tests.daemon.layout_trees import LONG_AGO, NOW, claims, divide, opened, put

from cachewarden.layouts import Context, split
from cachewarden.layouts.compilers import flashinfer as flashinfer_layout
from cachewarden.layouts.compilers import miopen as miopen_layout
from cachewarden.layouts.compilers import torch_extensions as extensions_layout
from cachewarden.layouts.compilers.triton import version_in
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Cost, KeepReason

MINUTE = 60 * 10**9
KEY = b"A" * 52


@pytest.fixture
def root(tmp_path):
    return os.fsencode(tmp_path)


def metadata(version: str) -> bytes:
    """What Triton writes beside a kernel."""
    return json.dumps({"triton_version": version, "target": {"backend": "cuda", "arch": 90}}).encode()


def times(folder: bytes, ns: int) -> None:
    """Last written and last read at `ns`, with everything in it."""
    for here, below, names in os.walk(folder, topdown=False):
        for name in (*below, *names):
            os.utime(os.path.join(here, name), ns=(ns, ns))
    os.utime(folder, ns=(ns, ns))


def stale(root: bytes) -> set[bytes]:
    return {name for name, each in claims(divide(root)).items() if each.stale}


class TestTriton:
    """One key is one unit."""

    def test_a_key_that_is_being_written_stays(self, root):
        """Its writer makes a directory of its own in it, by its process id; a killed one's is a day old."""
        triton.build(root)
        put(root + b"/" + KEY + b"/tmp.pid_1_u/k.cubin", mtime_ns=NOW - MINUTE)
        put(root + b"/short/tmp.pid_2_u/k.cubin", mtime_ns=LONG_AGO)
        times(root + b"/short/tmp.pid_2_u", LONG_AGO)
        found = claims(divide(root))
        assert found[KEY].keep is KeepReason.IN_USE
        assert found[b"short"].keep is None

    def test_a_key_that_was_made_this_minute_stays(self, root):
        """Its maker has not opened anything in it yet."""
        triton.build(root)
        os.mkdir(root + b"/new")
        os.utime(root + b"/new", ns=(NOW, NOW - MINUTE // 2))
        assert claims(divide(root))[b"new"].keep is KeepReason.IN_USE

    def test_what_an_earlier_version_made_is_stale_once_nobody_uses_it(self, root):
        """Written or read: either shows that the version is still there."""
        for key, version, last in (
            (b"A" * 52, "3.9.0", NOW),
            (b"B" * 52, "3.10.0", NOW),
            (b"C" * 52, "3.9.0", NOW - 40 * DAY),
            (b"D" * 52, "3.10.0", NOW - 40 * DAY),
        ):
            put(root + b"/" + key + b"/k.json", metadata(version))
            times(root + b"/" + key, last)
        assert stale(root) == {b"C" * 52}
        os.utime(root + b"/" + b"C" * 52 + b"/k.json", ns=(NOW - DAY, NOW - 40 * DAY))
        assert stale(root) == set()

    def test_what_users_wrote_themselves_stays(self, root):
        """Overrides are written by hand, dumps were asked for."""
        triton.build_home(root)
        names = set(claims(divide(root)))
        assert not [name for name in names if name.startswith((b"override", b"dump"))]
        assert b"autotune/key.pickle" in names
        assert claims(divide(root))[b"autotune/key.pickle"].locks == (b"autotune/key.pickle.lock",)

    @given(st.binary())
    def test_any_metadata_is_read_without_a_crash(self, text):
        """It is somebody's file."""
        version = version_in(text)
        assert version is None or all(0 <= each < 10**6 for each in version)

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda deep: st.lists(deep) | st.dictionaries(st.text(), deep),
        )
    )
    def test_any_json_is_read_without_a_crash(self, value):
        """Whatever a later version may write there."""
        assert version_in(json.dumps({"triton_version": value}).encode()) is None or isinstance(value, str)

    def test_metadata_that_nests_without_end_tells_nothing(self):
        assert version_in(b'{"triton_version":' + b"[" * 100_000) is None
        assert version_in(None) is None
        assert version_in(metadata("3.9.0+git1")) == (3, 9, 0)


class TestInductor:
    """Graphs are the source; code and kernels are made from them."""

    def test_what_graphs_contain_copies_of_is_derived(self, root):
        """Python code and Triton's binaries; compiled C++ is not in them."""
        inductor.build(root)
        costs = {name: each.cost for name, each in claims(divide(root)).items()}
        assert costs[b"ab"] is Cost.DERIVED
        assert costs[b"cd"] is Cost.REBUILD
        assert costs[b"triton/0/" + KEY] is Cost.DERIVED
        assert costs[b"fxgraph/ab/fabc"] is Cost.REBUILD

    def test_without_graphs_nothing_is_derived(self, root):
        """Nobody has a copy."""
        inductor.build(root)
        shutil.rmtree(root + b"/fxgraph")
        assert {each.cost for each in claims(divide(root)).values()} == {Cost.REBUILD}

    def test_locks_are_held_by_what_they_lock(self, root):
        """A key's own, and those of all code in a directory."""
        inductor.build(root)
        found = claims(divide(root))
        assert found[b"fxgraph/ab/fabc"].locks == (b"locks/fabc.lock",)
        assert set(found[b"ab"].locks) == {b"locks/fabc.lock", b"locks/" + inductor.CODE + b".lock"}
        assert found[b"cd"].locks == ()

    def test_headers_that_a_process_remembers_stay(self, root):
        """It asks for their place once, and includes them by path whenever it compiles."""
        inductor.build(root)
        found = divide(root)
        assert b"hj" not in claims(found)
        assert not any("hj" in each for each in found.warnings)

    def test_strangers_are_named_once_and_stay(self, root):
        inductor.build(root)
        put(root + b"/fxgraph/ab/notes.txt")
        (warning,) = divide(root).warnings
        assert "fxgraph/ab/notes.txt, mine" in warning


class TestJax:
    """Pairs, and a limit of its own."""

    def test_an_executable_goes_before_its_time_and_under_jaxs_lock(self, root):
        """Without its time, JAX would never write again; without the executable, a time does no harm."""
        jax.build(root)
        found = claims(divide(root))
        key = jax.KEYS[0]
        assert found[key + b"-cache"].paths == (key + b"-cache", key + b"-atime")
        assert all(each.locks == (b".lockfile",) for each in found.values() if each.kind != "autotune")

    def test_a_cache_that_jax_gave_up_is_reported(self, root):
        """Times of some and not of all: what happens when a limit is set later, or a cleaner was here."""
        jax.build(root)
        assert divide(root).warnings == ()
        os.unlink(root + b"/" + jax.KEYS[0] + b"-atime")
        (warning,) = divide(root).warnings
        assert re.search(r"\b1 executables? ", warning)

    def test_a_cache_without_a_limit_has_no_times_and_is_well(self, root):
        jax.build_unlimited(root)
        assert divide(root).warnings == ()


class TestVersions:
    """Directories of versions: stale once a later one came and nothing was used for a month."""

    def test_an_interpreter_that_is_gone_leaves_stale_extensions(self, root):
        """By CUDA as well; the latest is never stale, however old."""
        torch_extensions.build(root)
        times(root, NOW - 40 * DAY)
        assert {name.split(b"/")[0] for name in stale(root)} == {b"py310_cu121", b"py312_cpu"}
        library = root + b"/py310_cu121/cpu_adam/cpu_adam.so"
        os.utime(library, ns=(NOW - DAY, NOW - 40 * DAY))
        assert {name.split(b"/")[0] for name in stale(root)} == {b"py312_cpu"}

    def test_a_version_of_flashinfer_that_is_gone_leaves_stale_operators(self, root):
        """Numbers, not letters: 0.10 is later than 0.9."""
        flashinfer.build(root)
        os.rename(root + b"/0.2.14", root + b"/0.10.0")
        times(root, NOW - 40 * DAY)
        assert {name.split(b"/")[0] for name in stale(root)} == {b"0.3.0"}

    def test_what_cannot_be_read_is_not_stale(self, root, needs_root):
        """It may be in use there."""
        torch_extensions.build(root)
        times(root, NOW - 40 * DAY)
        os.chmod(root, 0o755)
        os.chmod(root + b"/py310_cu121/cpu_adam", 0)
        with opened(root) as tree:
            child = os.fork()
            if child == 0:
                try:
                    os.setgroups([])
                    os.setresgid(65534, 65534, 65534)
                    os.setresuid(65534, 65534, 65534)
                    found = claims(split(tree, "auto", Context(NOW)))
                    seen = found[b"py310_cu121/fused_adam"]
                    os._exit(seen.stale)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    @given(st.binary(max_size=40) | st.text(string.digits + ".+-_rcuopydm", max_size=30).map(str.encode))
    def test_any_name_is_read_without_a_crash(self, name):
        """A version is a few numbers, or none was told."""
        for read in (flashinfer_layout.version_of, miopen_layout.version_of, extensions_layout.version_of):
            version = read(name)
            assert version is None or all(each >= 0 for each in version)


class TestOthers:
    """One rule each."""

    @pytest.mark.parametrize(("age", "keep"), [(MINUTE, KeepReason.LOCKED), (2 * DAY, None)])
    def test_an_extension_whose_lock_is_young_may_be_building(self, root, age, keep):
        """Older torch makes the file to lock, newer torch locks it; an old one that is free is no lock."""
        torch_extensions.build(root)
        lock = root + b"/py312_cpu/cpu_adam/lock"
        os.utime(lock, ns=(NOW - age, NOW - age))
        found = claims(divide(root))[b"py312_cpu/cpu_adam"]
        assert (found.keep, found.locks) == (keep, (b"py312_cpu/cpu_adam/lock",))

    def test_data_of_numba_goes_before_its_index(self, root):
        """The next index numbers its data from 1 again."""
        numba.build_one(root)
        found = claims(divide(root))
        assert found[b"mod.f-12.py311"].paths == (
            b"mod.f-12.py311.1.nbc",
            b"mod.f-12.py311.2.nbc",
            b"mod.f-12.py311.nbi",
        )
        assert found[b"mod.gone-3.py311"].paths == (b"mod.gone-3.py311.1.nbc",)

    def test_caches_beside_sources_are_not_recognised(self, root):
        """They belong to the source tree."""
        numba.build_one(root)
        put(root + b"/mod.cpython-311.pyc")
        assert divide(root).layout != "numba"

    def test_what_vllm_compiled_for_one_configuration_is_one_entry(self, root):
        """Its list of artifacts names them all, and trees of other tools are artifacts too."""
        vllm.build(root)
        names = {name for name, each in claims(divide(root)).items() if each.layout == "vllm"}
        assert names == {
            b"torch_compile_cache/0123456789",
            b"torch_compile_cache/torch_aot_compile/" + b"0a" * 32,
        }
        assert {each.layout for each in divide(root).claims} == {"vllm", "jax"}
