"""Extensions for two interpreters, and some in a place that the user chose."""

import os

from tests.daemon.layout_trees import put

STAYS = (b"notes.txt",)


def extension(folder: bytes) -> None:
    """What ninja leaves."""
    name = os.path.basename(folder)
    for each in (b"build.ninja", b".ninja_log", b"main.o", name + b".so", b"lock"):
        put(folder + b"/" + each)


def build(root: bytes) -> None:
    """The default place."""
    for interpreter in (b"py310_cu121", b"py312_cu128", b"py312_cpu"):
        for name in (b"fused_adam", b"cpu_adam"):
            extension(root + b"/" + interpreter + b"/" + name)
    put(root + b"/notes.txt")


def build_chosen(root: bytes) -> None:
    """`TORCH_EXTENSIONS_DIR`."""
    extension(root + b"/fused_adam")
    extension(root + b"/cpu_adam")
    put(root + b"/notes.txt")


def usable(root, claim):
    """The library and what ninja needs to trust it."""
    names = os.listdir(root + b"/" + claim.name)
    return b"build.ninja" in names and any(name.endswith(b".so") for name in names)
