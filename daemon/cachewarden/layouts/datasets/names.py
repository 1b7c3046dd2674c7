"""Names in a datasets cache, as datasets 5.2 gives them.

See its `builder.py`, `arrow_dataset.py` and `utils/file_utils.py`.
"""

import re
from collections.abc import Mapping

from cachewarden.layouts.base import directories, files
from cachewarden.layouts.datasets.info import INFO

Listing = Mapping[bytes, int]

DOWNLOADS = b"downloads"
EXTRACTED = b"extracted"
INCOMPLETE = b".incomplete"
LOCK = b".lock"

# `hash_url_to_filename`: of the URL, then of the ETag; two kinds of files keep their ending.
HASHED = re.compile(rb"[0-9a-f]{64}(\.[0-9a-f]{64})?(\.py|\.h5)?")
# `_get_cache_file_path`, and `suffix_template` of `map` with several processes.
MAPPED = re.compile(rb"cache-(?P<fingerprint>.+?)(_\d{5}_of_\d{5})?\.arrow", re.DOTALL)
# tempfile.NamedTemporaryFile in the directory of the file that it becomes.
TEMPORARY = re.compile(rb"tmp[a-z0-9_]{8}")
_DATA = re.compile(rb".*\.(arrow|parquet)", re.DOTALL)
_BESIDE = frozenset({INFO, b"LICENSE", b"README.md"})
_SAVED = (b"state.json", b"dataset_dict.json")
_NAMESPACE = b"___"
_LOCKS_ASKED = 100  # one is enough where it is a datasets cache
# Those of `packaged_modules` that name the directory of what was prepared from files, or by a function.
_BUILDERS = frozenset(
    {b"arrow", b"audiofolder", b"csv", b"generator", b"imagefolder", b"json", b"pandas", b"parquet"}
    | {b"pdffolder", b"spark", b"sql", b"text", b"videofolder", b"webdataset", b"xml"}
)
# Of the builder's code, or of a commit.
_HASH = re.compile(rb"[0-9a-f]{16,64}")
# A directory's path with `_` for each slash; one that is too long ends in what Python's `hash` made of it.
_LOCK_OF_PATH = re.compile(rb".*(_[0-9a-f]{16,64}|_\d+\.\d+\.\d+|\.\.\.-?\d+)\.lock", re.DOTALL)


def is_part(name: bytes) -> bool:
    """Whether a file of this name in a prepared directory is the dataset's own, and no result of `map`."""
    return name in _BESIDE or (_DATA.fullmatch(name) is not None and MAPPED.fullmatch(name) is None)


def is_hash(name: bytes) -> bool:
    """Whether a directory of this name, below a version's, is one that a builder prepares."""
    return _HASH.fullmatch(name) is not None


def is_saved(listing: Listing) -> bool:
    """Whether `save_to_disk` wrote this directory: that is how people keep their work."""
    return any(name in listing for name in _SAVED)


def is_prepared(listing: Listing) -> bool:
    """Whether a builder prepared a dataset here, completely or not."""
    if b"features.json" in listing:  # TensorFlow Datasets prepared it
        return False
    return INFO in listing or any(_DATA.fullmatch(name) for name in files(listing))


def is_downloads(listing: Listing) -> bool:
    """Whether these are downloads: files named by hashes, with what is known of each beside it."""
    return any(HASHED.fullmatch(name) and name + b".json" in listing for name in files(listing))


def candidates(listing: Listing) -> list[bytes]:
    """Names of the directories that, by the names alone, may hold prepared datasets: worth a look inside.

    A builder leaves a lock at the top for each directory that it prepares, but people tidy those away.
    """
    locks = [name for name in files(listing) if _LOCK_OF_PATH.fullmatch(name)][:_LOCKS_ASKED]
    return [
        name
        for name in directories(listing)
        if name in _BUILDERS or _NAMESPACE in name or any(b"_" + name + b"_" in lock for lock in locks)
    ]
