"""Where tools keep their caches: the variables that say so, and the places without them. Data only.

Each row names where that was read. In a default, `~` is the user's home and `$CACHE` is
`$XDG_CACHE_HOME`, by default `~/.cache`; a `*` stands for any name in that one directory. In `variables`,
the second part lies below the variable's value.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tool:
    """One kind of cache. `name` becomes the location's name.

    `independent`: each direct child is a file or folder that can be made again by itself, so that the
    place may be proposed though no layout knows its shape.
    """

    name: str
    title: str
    variables: tuple[tuple[str, str], ...]
    defaults: tuple[str, ...]
    source: str
    independent: bool = False


TOOLS = (
    Tool(
        "huggingface-hub",
        "Hugging Face hub",
        (
            ("HF_HUB_CACHE", ""),
            ("HUGGINGFACE_HUB_CACHE", ""),
            ("HF_HOME", "hub"),
            ("SENTENCE_TRANSFORMERS_HOME", ""),
        ),
        ("$CACHE/huggingface/hub",),
        "huggingface_hub 2.4.0, constants.py; sentence_transformers 6.2.0, base/model.py",
    ),
    Tool(
        "huggingface-datasets",
        "Hugging Face datasets",
        (
            ("HF_DATASETS_CACHE", ""),
            ("HF_HOME", "datasets"),
            ("HF_DATASETS_DOWNLOADED_DATASETS_PATH", ""),
            ("HF_DATASETS_EXTRACTED_DATASETS_PATH", ""),
        ),
        ("$CACHE/huggingface/datasets",),
        "datasets 5.2.0, config.py",
    ),
    Tool(
        "huggingface-xet",
        "Hugging Face Xet",
        (("HF_XET_CACHE", ""), ("HF_HOME", "xet")),
        ("$CACHE/huggingface/xet",),
        "xet-core af1a3ff9, xet_runtime/src/core/cache_dir.rs",
    ),
    Tool(
        "huggingface-assets",
        "Hugging Face assets",
        (("HF_ASSETS_CACHE", ""), ("HUGGINGFACE_ASSETS_CACHE", ""), ("HF_HOME", "assets")),
        ("$CACHE/huggingface/assets",),
        "huggingface_hub 2.4.0, constants.py",
    ),
    Tool(
        "torch-hub",
        "torch.hub",
        (("TORCH_HOME", "hub"),),
        ("$CACHE/torch/hub",),
        "torch 2.14.1, hub.py",
    ),
    Tool(
        "torch-hub-checkpoints",
        "torch.hub weights",
        (("TORCH_HOME", "hub/checkpoints"),),
        ("$CACHE/torch/hub/checkpoints",),
        "torch 2.14.1, hub.py: one file for each URL, missing ones are downloaded",
        independent=True,
    ),
    Tool(
        "torch-extensions",
        "torch extensions",
        (("TORCH_EXTENSIONS_DIR", ""),),
        ("$CACHE/torch_extensions",),
        "torch 2.14.1, utils/cpp_extension.py",
    ),
    Tool(
        "torch-kernels",
        "torch jiterator",
        (("PYTORCH_KERNEL_CACHE_PATH", ""),),
        ("$CACHE/torch/kernels",),
        "pytorch, aten/src/ATen/native/cuda/jit_utils.cpp: single files, compiled again",
        independent=True,
    ),
    Tool(
        "torchinductor",
        "TorchInductor",
        (("TORCHINDUCTOR_CACHE_DIR", ""), ("TMPDIR", "torchinductor_*")),
        ("/tmp/torchinductor_*",),  # noqa: S108 - where torch puts it; nothing is made there
        "torch 2.14.1, _inductor/runtime/cache_dir_utils.py",
    ),
    Tool(
        "triton",
        "Triton",
        (("TRITON_CACHE_DIR", ""), ("TRITON_HOME", ".triton/cache")),
        ("~/.triton/cache",),
        "triton 3.9.0, knobs.py",
    ),
    Tool(
        "cuda",
        "CUDA ComputeCache",
        (("CUDA_CACHE_PATH", ""),),
        ("~/.nv/ComputeCache",),
        "CUDA programming guide, environment variables",
    ),
    Tool(
        "vllm",
        "vLLM",
        (("VLLM_CACHE_ROOT", ""),),
        ("$CACHE/vllm",),
        "vllm 0.33.0, envs.py",
    ),
    Tool(
        "sglang",
        "SGLang",
        (("SGLANG_CACHE_DIR", ""), ("SGLANG_JIT_CACHE_DIR", "")),
        ("~/.cache/sglang",),
        "sglang 0.5.23, srt/environ.py",
    ),
    Tool(
        "flashinfer",
        "flashinfer",
        (("FLASHINFER_WORKSPACE_BASE", ".cache/flashinfer"), ("FLASHINFER_CUBIN_DIR", "")),
        ("~/.cache/flashinfer",),
        "flashinfer fb28d7242, flashinfer/jit/env.py",
    ),
    Tool(
        "deep-gemm",
        "DeepGEMM",
        (("DG_JIT_CACHE_DIR", ""),),
        (),
        "vllm 0.33.0, envs.py",
    ),
    Tool(
        "tilelang",
        "TileLang",
        (("TILELANG_CACHE_DIR", ""),),
        (),
        "sglang 0.5.23, srt/environ.py",
    ),
    Tool(
        "jax",
        "JAX",
        (("JAX_COMPILATION_CACHE_DIR", ""),),
        (),
        "jax cec06d116c, _src/compilation_cache.py",
    ),
    Tool(
        "tf-hub",
        "TensorFlow Hub",
        (("TFHUB_CACHE_DIR", ""), ("TMPDIR", "tfhub_modules")),
        ("/tmp/tfhub_modules",),  # noqa: S108 - where tensorflow_hub puts it; nothing is made there
        "tensorflow_hub 0.16.1, resolver.py",
    ),
    Tool(
        "tfds",
        "TensorFlow Datasets",
        (("TFDS_DATA_DIR", ""),),
        ("~/tensorflow_datasets",),
        "tensorflow_datasets 4.9.10, core/constants.py",
    ),
    Tool(
        "keras",
        "Keras",
        (("KERAS_HOME", "models"), ("KERAS_HOME", "datasets")),
        ("~/.keras/models", "~/.keras/datasets"),
        "keras 3.15.1, src/utils/file_utils.py and src/backend/config.py",
    ),
    Tool(
        "torch-tensorrt",
        "Torch-TensorRT",
        (("TMPDIR", "torch_tensorrt_engine_cache"),),
        ("/tmp/torch_tensorrt_engine_cache",),  # noqa: S108 - where it is put; nothing is made there
        "torch-tensorrt d7f2062810, py/torch_tensorrt/dynamo/_defaults.py and _engine_cache.py",
    ),
    Tool(
        "numba",
        "Numba",
        (("NUMBA_CACHE_DIR", ""),),
        ("~/.cache/numba",),
        "numba 0.68.1, core/caching.py",
    ),
    Tool(
        "cupy",
        "CuPy",
        (("CUPY_CACHE_DIR", ""),),
        ("~/.cupy/kernel_cache",),
        "CuPy reference, environment variables",
    ),
    Tool(
        "miopen",
        "MIOpen",
        (("MIOPEN_CUSTOM_CACHE_DIR", ""),),
        ("~/.cache/miopen",),
        "MIOpen 2d1fd997a, src/binary_cache.cpp",
    ),
    Tool(
        "ollama",
        "Ollama",
        (("OLLAMA_MODELS", ""),),
        ("~/.ollama/models", "/usr/share/ollama/.ollama/models"),
        "ollama fb3076099, envconfig/config.go",
    ),
    Tool(
        "llama-cpp",
        "llama.cpp",
        (("LLAMA_CACHE", ""),),
        ("$CACHE/llama.cpp",),
        "llama.cpp, common/common.cpp and common/hf-cache.cpp",
    ),
    Tool(
        "lm-studio",
        "LM Studio",
        (),
        ("~/.lmstudio/models", "~/.cache/lm-studio/models"),
        "lms 07b7252, src/lmstudioPaths.ts",
    ),
    Tool(
        "modelscope",
        "ModelScope",
        (("MODELSCOPE_CACHE", ""),),
        ("~/.cache/modelscope",),
        "modelscope-hub 0.5.1, _cache_manager.py",
    ),
    Tool(
        "whisper",
        "Whisper",
        (),
        ("$CACHE/whisper",),
        "whisper 20250625, __init__.py: one file for each model, missing ones are downloaded",
        independent=True,
    ),
    Tool("uv", "uv", (("UV_CACHE_DIR", ""),), ("$CACHE/uv",), "uv 26a9dd4b21, crates/uv-cache/src/lib.rs"),
    Tool("pip", "pip", (("PIP_CACHE_DIR", ""),), ("$CACHE/pip",), "pip 26.3, _internal/locations/base.py"),
    Tool(
        "conda",
        "conda packages",
        (("CONDA_PKGS_DIRS", ""),),
        ("~/miniconda3/pkgs", "~/anaconda3/pkgs", "~/miniforge3/pkgs", "/opt/conda/pkgs"),
        "conda 0f64223fb, conda/base/context.py",
    ),
    Tool(
        "ccache",
        "ccache",
        (("CCACHE_DIR", ""),),
        ("$CACHE/ccache", "~/.ccache"),
        "ccache e5731387, src/ccache/config.cpp",
    ),
)

# What is read of an environment besides: to complete the values of those above, and the defaults.
COMPLETING = frozenset({"HOME", "XDG_CACHE_HOME"})
KNOWN = COMPLETING | {variable for tool in TOOLS for variable, _ in tool.variables}
