"""Places that are reported and never touched: nothing brings back what is in them.

Models that people choose, name and refer to (ComfyUI, Stable Diffusion WebUI, LM Studio), data that programs
do not fetch again by themselves (NLTK, spaCy).
"""

from cachewarden.layouts.reported.comfyui import COMFYUI
from cachewarden.layouts.reported.lmstudio import LMSTUDIO
from cachewarden.layouts.reported.nltk import NLTK
from cachewarden.layouts.reported.spacy import SPACY
from cachewarden.layouts.reported.webui import WEBUI

__all__ = ["REPORTED"]

REPORTED = (COMFYUI, WEBUI, LMSTUDIO, NLTK, SPACY)
