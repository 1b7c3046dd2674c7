"""The layouts of model stores and of other tools' caches, in the order in which `auto` asks them."""

from cachewarden.layouts.base import Layout
from cachewarden.layouts.delegated import DELEGATED
from cachewarden.layouts.keras import Keras
from cachewarden.layouts.llamacpp import LlamaCpp
from cachewarden.layouts.modelscope import ModelScope
from cachewarden.layouts.ollama import Ollama
from cachewarden.layouts.reported import REPORTED
from cachewarden.layouts.sentence_transformers import SentenceTransformers
from cachewarden.layouts.tfds import TensorFlowDatasets
from cachewarden.layouts.tfhub import TensorFlowHub
from cachewarden.layouts.torchhub import TorchHub
from cachewarden.layouts.whisper import Whisper

STORES: tuple[Layout, ...] = (
    Ollama(),
    ModelScope(),
    TorchHub(),
    SentenceTransformers(),
    TensorFlowHub(),
    TensorFlowDatasets(),
    Keras(),
    LlamaCpp(),
    Whisper(),
    *REPORTED,
    *DELEGATED,
)
