"""JAX's cache with a size limit of its own, and without one."""

import os

from tests.daemon.layout_trees import put

STAYS = ()
KEYS = (b"jit_f-" + b"0a" * 32, b"jit_g-" + b"1b" * 32)


def build(root: bytes) -> None:
    """With a limit: pairs and a lock."""
    build_unlimited(root)
    for key in KEYS:
        put(root + b"/" + key + b"-atime", b"12345678")
    put(root + b"/jit_gone-" + b"2c" * 32 + b"-atime", b"12345678")
    put(root + b"/.lockfile", b"")


def build_unlimited(root: bytes) -> None:
    """Without: files alone, and what XLA tuned."""
    for key in KEYS:
        put(root + b"/" + key + b"-cache")
    put(root + b"/xla_gpu_per_fusion_autotune_cache_dir/tuned.textproto")
    put(root + b"/xla_gpu_kernel_cache_file")


def usable(root, claim):
    """The file is there, and no `-cache` lost its `-atime`: where one did, JAX writes nothing any more."""
    names = set(os.listdir(root))
    limited = b".lockfile" in names
    caches = {name.removesuffix(b"-cache") for name in names if name.endswith(b"-cache")}
    dated = all(key + b"-atime" in names for key in caches)
    return os.path.exists(root + b"/" + claim.name) and (dated or not limited)
