"""Models of LM Studio, one of them imported as a link."""

import os

from tests.daemon.layout_trees import link, put

STAYS = (
    b"TheBloke/Llama-GGUF/llama.Q4.gguf",
    b"me/imported/m.gguf",
)


def build(root: bytes) -> None:
    """The models folder."""
    put(root + b"/TheBloke/Llama-GGUF/llama.Q4.gguf")
    put(root + b"/TheBloke/Qwen-GGUF/qwen.gguf")
    link(root + b"/me/imported/m.gguf", b"/data/m.gguf")
    put(root + b"/zoo/readme.txt")


def build_home(root: bytes) -> None:
    """The home of the program."""
    build(root + b"/models")
    put(root + b"/.internal/state.json")
    put(root + b"/settings.json")


def usable(root, claim):
    """It is there."""
    return os.path.lexists(root + b"/" + claim.name)
