"""A stand-in for `ollama serve` that keeps to its documented interface (`docs/api.md`), and to its ways.

It lists what it found when it started, as the real one does; deleting through it removes the manifest, then
the blobs that no other manifest names.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODELS = Path(os.environ.get("OLLAMA_MODELS", ""))
LOADED = os.environ.get("LOADED", "").split()
MOOD = os.environ.get("MOOD", "")


def manifests() -> dict[str, Path]:
    """Every name with the file of its manifest."""
    found: dict[str, Path] = {}
    for root in (MODELS / "manifests-v2", MODELS / "manifests"):
        for path in root.glob("*/*/*/*"):
            host, namespace, model, tag = path.relative_to(root).parts
            found.setdefault(f"{host}/{namespace}/{model}:{tag}", path)
    return found


def digests(path: Path) -> set[str]:
    """What a manifest names."""
    text = json.loads(path.read_text())
    own = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    return {own, *(layer["digest"] for layer in (text["config"], *text["layers"]))}


def shortest(name: str) -> str:
    """As the real one shows names."""
    return name.removeprefix("registry.ollama.ai/").removeprefix("library/")


KNOWN = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in manifests().items()}


class Handler(BaseHTTPRequestHandler):
    """Three routes."""

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def answer(self, status: int, value: object) -> None:
        """JSON."""
        body = b"<html>" if MOOD == "nonsense" else json.dumps(value).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Lists."""
        if self.path == "/api/tags":
            known = dict.fromkeys(KNOWN, "0" * 64) if MOOD == "other" else KNOWN
            self.answer(200, {"models": [{"name": shortest(n), "digest": d} for n, d in known.items()]})
        elif self.path == "/api/ps":
            self.answer(200, {"models": [{"name": name, "model": name} for name in LOADED]})
        else:
            self.answer(404, {"error": "not found"})

    def do_DELETE(self) -> None:
        """Remove a model."""
        name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        if MOOD == "refuses" or name not in KNOWN:
            self.answer(404, {"error": f"model '{name}' not found"})
            return
        if MOOD == "lies":
            self.answer(200, None)
            return
        path = manifests()[name]
        mine = digests(path)
        path.unlink()
        del KNOWN[name]
        for digest in mine - {each for other in manifests().values() for each in digests(other)}:
            (MODELS / "blobs" / digest.replace(":", "-")).unlink(missing_ok=True)
        self.answer(200, None)


@contextmanager
def serving(models: Path, folder: Path, **environment: str) -> Iterator[subprocess.Popen]:
    """The stand-in as a process `ollama serve` over a store; it answers when this returns."""
    from tests.ports import free_port  # noqa: PLC0415 - the copy below knows nothing of tests

    folder.mkdir()
    (folder / "serve").write_text(Path(__file__).read_text())
    port = free_port()
    own = {"OLLAMA_MODELS": str(models), "OLLAMA_HOST": f"127.0.0.1:{port}", "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        ["ollama", "serve"],
        executable=sys.executable,
        cwd=folder,
        env=own | {"PORT": str(port)} | environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "listening\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    server = ThreadingHTTPServer((os.environ.get("LISTEN", "127.0.0.1"), int(os.environ["PORT"])), Handler)
    print("listening", flush=True)
    server.serve_forever()
