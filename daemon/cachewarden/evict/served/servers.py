"""Which Ollama servers live on a store, and where each of them can be asked.

A server is a process `ollama serve` of somebody who can write to the store. Its environment says which
directory it keeps and where it listens (`envconfig/config.go`: OLLAMA_MODELS, OLLAMA_HOST); both are looked
up as the process sees them. That a socket is its own is proved, not assumed: another server's answer would
be about other models.
"""

import ipaddress
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

_SERVING = frozenset({b"serve", b"start"})
_PORT = 11434
_IPV4 = 4
_LISTENING = b"0A"  # TCP_LISTEN, see proc_net(5)
_ENVIRONMENT_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Server:
    """A server that keeps the store. `address` is None where we cannot reach it for certain."""

    pid: int
    address: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Servers:
    """All servers of one store. `complete` is false when some server would not say which store is its own."""

    found: tuple[Server, ...] = ()
    complete: bool = True


def servers_of(store_fd: int, proc: str = "/proc") -> Servers:
    """The servers that keep the store behind an open directory (`blobs` and `manifests` are in it)."""
    store = os.fstat(store_fd)
    found, complete = [], True
    for pid in _pids(proc, store):
        environment = _environment(f"{proc}/{pid}")
        if environment is None:
            complete = False
            continue
        keeps = _keeps(f"{proc}/{pid}", environment, store)
        complete = complete and keeps is not None
        if keeps:
            found.append(Server(pid, _address(f"{proc}/{pid}", proc, environment)))
    return Servers(tuple(found), complete)


def _pids(proc: str, store: os.stat_result) -> Iterator[int]:
    """The processes that may be servers of this store; others could only pretend to be."""
    anybody = bool(store.st_mode & 0o022)
    for name in os.listdir(proc):
        if name.isdigit():
            with suppress(OSError):
                if not anybody and os.stat(f"{proc}/{name}").st_uid not in (0, store.st_uid):
                    continue
                command = _read(f"{proc}/{name}/cmdline").split(b"\0")
                if os.path.basename(command[0]) == b"ollama" and not _SERVING.isdisjoint(command[1:2]):
                    yield int(name)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_ENVIRONMENT_MAX)


def _environment(process: str) -> dict[bytes, bytes] | None:
    """The environment that it was started with; None when we may not look."""
    try:
        text = _read(f"{process}/environ")
    except OSError:
        return None
    return {name: value for name, _, value in (each.partition(b"=") for each in text.split(b"\0"))}


def _value(environment: dict[bytes, bytes], name: bytes) -> bytes:
    """A variable without the blanks and quotes that Ollama takes off."""
    return environment.get(name, b"").strip().strip(b"\"'").strip()


def _keeps(process: str, environment: dict[bytes, bytes], store: os.stat_result) -> bool | None:
    """Whether its directory is this store, looked up from where the process stands; None: not known."""
    models = _value(environment, b"OLLAMA_MODELS")
    if not models:
        home = environment.get(b"HOME", b"")
        models = os.path.join(home, b".ollama/models") if home else b""
    if not models:
        return None
    below = b"/root" if models.startswith(b"/") else b"/cwd/"
    try:
        there = os.stat(os.fsencode(process) + below + models)
    except FileNotFoundError:
        return False  # the store is there
    except OSError:
        return None
    return (there.st_dev, there.st_ino) == (store.st_dev, store.st_ino)


def _address(process: str, proc: str, environment: dict[bytes, bytes]) -> tuple[str, int] | None:
    """Where it listens, if that is in our network namespace and the socket is its own."""
    parsed = parse_host(_value(environment, b"OLLAMA_HOST"))
    if parsed is None:
        return None
    host, port = parsed
    try:
        if os.readlink(f"{process}/ns/net") != os.readlink(f"{proc}/self/ns/net"):
            return None
        sockets = set(_sockets(f"{process}/fd"))
    except OSError:
        return None
    listening = {
        inode for name in ("tcp", "tcp6") for inode in _listening(f"{proc}/net/{name}", *_heard(host, port))
    }
    return (host, port) if sockets & listening else None


def _heard(host: str, port: int) -> tuple[bytes, ...]:
    """Local addresses of sockets that get what is sent to this one, as proc_net(5) has them.

    On another address of this machine the same port may be another server's. Beside one of these there is no
    other (bind(2), EADDRINUSE), unless it wants nothing of IPv4, which Go's servers do not (ipv6(7)).
    """
    address = ipaddress.ip_address(host)
    alike = [address, ipaddress.ip_address("::")]
    if address.version == _IPV4:
        alike += [ipaddress.ip_address("0.0.0.0"), ipaddress.ip_address(f"::ffff:{host}")]  # noqa: S104
    return tuple(b"%s:%04X" % (_words(each.packed), port) for each in alike)


def _words(packed: bytes) -> bytes:
    """An address in words of four bytes, each in the order of this machine."""
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return b"".join(b"%08X" % word for word in words)


def parse_host(text: bytes) -> tuple[str, int] | None:
    """Host and port of an OLLAMA_HOST, a wildcard as the loopback address; None for what is none.

    Names of hosts are not looked up: only `localhost` and addresses of this machine's loopback are asked.
    """
    rest = text.decode("ascii", "replace").rpartition("://")[2].partition("/")[0]
    host, colon, number = rest.rpartition(":")
    if not colon or number.endswith("]") or (":" in host and not host.startswith("[")):
        host, number = rest, str(_PORT)
    host = host.strip("[]")
    if not (number.isascii() and number.isdigit() and 0 < len(number) < 6 and int(number) < 65536):
        return None
    loopback = {"": "127.0.0.1", "localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1", "::1": "::1"}  # noqa: S104
    if host.startswith("127."):
        loopback[host] = host
    return (loopback[host], int(number)) if host in loopback else None


def _sockets(directory: str) -> Iterator[bytes]:
    """The inodes of the sockets that a process has open."""
    for name in os.listdir(directory):
        with suppress(OSError):
            link = os.readlink(f"{directory}/{name}")
            if link.startswith("socket:["):
                yield link[8:-1].encode()


def _listening(table: str, *local: bytes) -> Iterator[bytes]:
    """The inodes of sockets that listen on one of these; see proc_net(5)."""
    with suppress(OSError):
        for line in _read(table).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENING and fields[1] in local:
                yield fields[9]
