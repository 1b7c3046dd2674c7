"""A small hub on the loopback interface, enough for the real `huggingface_hub` client.

It answers what `snapshot_download` and `hf_hub_download` of huggingface_hub 2.4 ask for:

- `GET /api/TYPEs/ORG/NAME[/revision/REV]`: the commit behind a branch, tag, pull request or commit;
- `GET /api/TYPEs/ORG/NAME/tree/REV[/DIRECTORY]`: the files of a commit with their sizes and hashes,
  all below with `recursive=true`;
- `POST /api/TYPEs/ORG/NAME/paths-info/REV`: the same of the paths that are asked for;
- `HEAD` and `GET` of `/[datasets/|spaces/]ORG/NAME/resolve/REV/FILE`, with byte ranges.

Files of 1 KiB and more are stored as LFS does it (named by their SHA-256), smaller ones as git does it
(SHA-1 of the blob), so that both kinds of names appear in a cache. Content comes from a seed: two hubs
with the same calls serve the same bytes and the same commits.
"""

import hashlib
import json
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

LFS_FROM = 1024
CHUNK = 256 * 1024

_API = re.compile(
    r"/api/(?P<type>model|dataset|space)s/(?P<repo>[^/]+/[^/]+)"
    r"(?:/(?P<what>revision|tree|paths-info)/(?P<rev>[^/]+)(?:/(?P<directory>.+))?)?"
)
_FILE = re.compile(
    r"/(?:(?P<type>dataset|space)s/)?(?P<repo>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<path>.+)"
)


def content(size: int, seed: object) -> bytes:
    """`size` bytes that do not compress and depend on nothing but `seed`."""
    return random.Random(str(seed)).randbytes(size)


@dataclass(frozen=True)
class Stored:
    """One file of one commit, with the name that the client's cache will give it."""

    data: bytes

    @property
    def lfs(self) -> bool:
        """Whether it is stored by its SHA-256 rather than as a git blob."""
        return len(self.data) >= LFS_FROM

    @property
    def etag(self) -> str:
        """SHA-256 of the content, or what git calls a blob with it."""
        if self.lfs:
            return hashlib.sha256(self.data).hexdigest()
        return self.git_name

    @property
    def git_name(self) -> str:
        """SHA-1 of the git blob."""
        return hashlib.sha1(b"blob %d\0" % len(self.data) + self.data).hexdigest()

    def listing(self, path: str) -> dict[str, object]:
        """The object of the tree listing."""
        shown: dict[str, object] = {
            "type": "file",
            "path": path,
            "size": len(self.data),
            "oid": self.git_name,
        }
        if self.lfs:
            shown["lfs"] = {"oid": self.etag, "size": len(self.data), "pointerSize": 134}
        return shown


@dataclass
class Repo:
    """Commits with their files, and the names that point to them."""

    commits: dict[str, dict[str, Stored]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)


class Hub:
    """A hub with the repositories that were added. A context manager; `url` is its endpoint.

    `pace` seconds pass after each 256 KiB that it sends, so that a test can act while a download lasts.
    """

    def __init__(self, pace: float = 0.0) -> None:
        self.pace = pace
        self.repos: dict[tuple[str, str], Repo] = {}
        self.served: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="hub")

    @property
    def url(self) -> str:
        """What HF_ENDPOINT must be set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def commit(self, repo: str, files: Mapping[str, bytes], *, ref: str = "main", kind: str = "model") -> str:
        """Add a commit with these files and let `ref` point to it. Returns the commit's 40 digits."""
        stored = {path: Stored(data) for path, data in files.items()}
        names = json.dumps([kind, repo, ref, sorted((path, file.etag) for path, file in stored.items())])
        commit = hashlib.sha1(names.encode()).hexdigest()
        kept = self.repos.setdefault((kind, repo), Repo())
        kept.commits[commit] = stored
        kept.refs[ref] = commit
        return commit

    def model(self, repo: str, mebibytes: float, *, ref: str = "main", shards: int = 2) -> str:
        """A model in the usual shape: configuration, tokenizer and weight shards of `mebibytes` in all."""
        each = int(mebibytes * 2**20) // shards
        files = {
            "config.json": json.dumps({"model": repo, "revision": ref}).encode(),
            "tokenizer/vocab.txt": content(3000, (repo, "vocab")),
        }
        for number in range(shards):
            files[f"model-{number + 1:05}-of-{shards:05}.safetensors"] = content(each, (repo, ref, number))
        return self.commit(repo, files, ref=ref)

    def files(self, repo: str, revision: str = "main", kind: str = "model") -> dict[str, bytes]:
        """The true content of a revision: what a complete snapshot has to hold."""
        kept = self.repos[kind, repo]
        commit = kept.refs.get(revision, revision)
        return {path: file.data for path, file in kept.commits[commit].items()}


@dataclass(frozen=True)
class _Answer:
    """Status, headers and body of one response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _refusal(code: str) -> _Answer:
    """404 with the header by which the client tells a missing repository, revision and file apart."""
    return _Answer(404, {"X-Error-Code": code}, json.dumps({"error": code}).encode())


def _find(hub: Hub, match: re.Match[str]) -> tuple[Repo, str] | _Answer:
    """The repository and the commit that a request names."""
    repo = hub.repos.get((match["type"] or "model", match["repo"]))
    if repo is None:
        return _refusal("RepoNotFound")
    revision = unquote(match["rev"] or "main")
    commit = repo.refs.get(revision, revision)
    if commit not in repo.commits:
        return _refusal("RevisionNotFound")
    return repo, commit


def _answer(hub: Hub, path: str, asked: Mapping[str, list[str]], wanted: str | None) -> _Answer:
    """What the hub says to `path` with the query or form `asked`; `wanted` is the Range header."""
    if match := _API.fullmatch(path):
        found = _find(hub, match)
        return found if isinstance(found, _Answer) else _describe(match, asked, *found)
    if match := _FILE.fullmatch(path):
        found = _find(hub, match)
        return found if isinstance(found, _Answer) else _serve(unquote(match["path"]), *found, wanted)
    return _refusal("EntryNotFound")


def _describe(match: re.Match[str], asked: Mapping[str, list[str]], repo: Repo, commit: str) -> _Answer:
    """The commit of a repository, or the list of its files."""
    files = repo.commits[commit]
    shown: object
    if match["what"] == "tree":
        top = unquote(match["directory"] or "")
        everything = asked.get("recursive", [""])[0].lower() in ("true", "1")
        shown = _tree(files, f"{top}/" if top else "", everything=everything)
    elif match["what"] == "paths-info":
        shown = [files[path].listing(path) for path in asked.get("paths", []) if path in files]
    else:
        shown = {"id": match["repo"], "sha": commit, "siblings": [{"rfilename": path} for path in files]}
    return _Answer(200, {"Content-Type": "application/json"}, json.dumps(shown).encode())


def _tree(files: Mapping[str, Stored], top: str, *, everything: bool) -> list[dict[str, object]]:
    """The files below `top` (with a slash, or empty): all, or those right in it, and directories."""
    below = {path: file for path, file in files.items() if path.startswith(top)}
    if everything:
        return [file.listing(path) for path, file in below.items()]
    inside = {path[len(top) :].partition("/")[0] for path in below if "/" in path[len(top) :]}
    return [
        *({"type": "directory", "path": top + name, "oid": "0" * 40, "size": 0} for name in sorted(inside)),
        *(file.listing(path) for path, file in below.items() if "/" not in path[len(top) :]),
    ]


def _serve(path: str, repo: Repo, commit: str, wanted: str | None) -> _Answer:
    """A file, or the part of it that the Range header asks for."""
    file = repo.commits[commit].get(path)
    if file is None:
        refused = _refusal("EntryNotFound")
        return _Answer(404, {**refused.headers, "X-Repo-Commit": commit}, refused.body)
    headers = {"ETag": f'"{file.etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
    if file.lfs:
        headers |= {"X-Linked-Etag": f'"{file.etag}"', "X-Linked-Size": str(len(file.data))}
    part = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
    if part is None:
        return _Answer(200, headers, file.data)
    first, last = int(part[1]), int(part[2] or len(file.data) - 1)
    headers["Content-Range"] = f"bytes {first}-{last}/{len(file.data)}"
    return _Answer(206, headers, file.data[first : last + 1])


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    """A request handler class that knows its hub."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._respond(body=False)

        def do_GET(self) -> None:
            self._respond(body=True)

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            as_json = "json" in self.headers.get("Content-Type", "")
            self._respond(body=True, form=json.loads(sent) if as_json else parse_qs(sent))

        def _respond(self, *, body: bool, form: Mapping[str, list[str]] | None = None) -> None:
            path = urlsplit(self.path).path
            if body:
                hub.served.append(path)
            asked = parse_qs(urlsplit(self.path).query) if form is None else form
            answer = _answer(hub, path, asked, self.headers.get("Range"))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if not body:
                return
            for start in range(0, len(answer.body), CHUNK):
                self.wfile.write(answer.body[start : start + CHUNK])
                time.sleep(hub.pace)

        def log_message(self, *_: object) -> None:
            """Quiet: a test's output is the client's and ours, not the hub's."""

    return Handler
