"""The real `huggingface_hub` client, each batch of requests in a process of its own.

The client reads its environment when it is imported and keeps listings in memory, so only a fresh
process shows what the next user of the cache would see. Run as a script it reads a JSON array of
requests from standard input, carries them out in turn and prints one JSON line for each.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

_DONE = "answer "


def client_environment(endpoint: str, cache: str) -> dict[str, str]:
    """The environment of a client: this hub, this cache, nothing else of the user's, no telemetry."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE_"))}
    return kept | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": os.path.join(cache, "..", "hf-home"),
        "HF_HUB_CACHE": cache,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    }


def download(repo: str, revision: str = "main", *, local: bool = False) -> dict[str, object]:
    """A request: `snapshot_download`, then the digest of each file. `local`: only what is in the cache.

    The answer has `path` and `files` (name to SHA-256), or `error` (the exception's class) and `text`.
    """
    return {"do": "download", "repo": repo, "revision": revision, "local": local}


def scan() -> dict[str, object]:
    """A request: `scan_cache_dir`. The answer has `repos` (id to commits), `warnings` and `size`."""
    return {"do": "scan"}


def start_client(
    endpoint: str,
    cache: str,
    requests: Sequence[dict[str, object]],
    extra: Mapping[str, str] | None = None,
    packages: str | None = None,
) -> subprocess.Popen[str]:
    """Start a client with these requests; `answers` waits for it.

    `extra` is added to its environment. With `packages`, a directory, it is the client that is installed
    there, and nothing of this environment.
    """
    environ = client_environment(endpoint, cache) | dict(extra or {})
    command = [sys.executable, os.path.abspath(__file__)]
    if packages is not None:
        environ["PYTHONPATH"] = packages
        command.insert(1, "-S")
    client = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdin is not None
    client.stdin.write(json.dumps(list(requests)) + "\n")
    client.stdin.flush()
    return client


def answers(client: subprocess.Popen[str], timeout: float = 60) -> list[dict]:
    """One answer for each request. Raises AssertionError with the client's own words when it died."""
    out, err = client.communicate(timeout=timeout)
    assert client.returncode == 0, f"the hub client ended with {client.returncode}: {err}"
    return [json.loads(line.removeprefix(_DONE)) for line in out.splitlines() if line.startswith(_DONE)]


def run_client(
    endpoint: str,
    cache: str,
    *requests: dict[str, object],
    extra: Mapping[str, str] | None = None,
    packages: str | None = None,
) -> list[dict]:
    """Carry out the requests in one fresh client process, made as by `start_client`."""
    return answers(start_client(endpoint, cache, requests, extra, packages))


def digests(files: dict[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file, to be compared with an answer's `files`."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}


def _snapshot(request: dict) -> dict[str, object]:
    from huggingface_hub import snapshot_download  # noqa: PLC0415  (reads the environment when imported)

    root = snapshot_download(request["repo"], revision=request["revision"], local_files_only=request["local"])
    files = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, root)] = hashlib.sha256(file.read()).hexdigest()
    return {"path": root, "files": files}


def _scan() -> dict[str, object]:
    from huggingface_hub import scan_cache_dir  # noqa: PLC0415

    info = scan_cache_dir()
    return {
        "repos": {repo.repo_id: sorted(each.commit_hash for each in repo.revisions) for repo in info.repos},
        "warnings": [str(each) for each in info.warnings],
        "size": info.size_on_disk,
    }


def _main() -> None:
    for request in json.loads(sys.stdin.readline()):
        try:
            answer = _scan() if request["do"] == "scan" else _snapshot(request)
        except Exception as error:  # noqa: BLE001  (every way to fail is an answer that the test judges)
            answer = {"error": type(error).__name__, "text": str(error)}
        print(_DONE + json.dumps(answer), flush=True)


if __name__ == "__main__":
    _main()
