"""Where the server listens, and which Host headers mean it."""

import contextlib
import errno
import ipaddress
import os
import socket
from dataclasses import dataclass

from cachewarden.errors import ListenError

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Address:
    """A host (a name, or an address without brackets; empty: all addresses) and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """From `127.0.0.1:9843`, `[::1]:9843`, `host:9843` or `:9843`. Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text!r} is no address: IPv6 goes in brackets, as in [::1]:9843")
        if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
            raise ValueError(f"{text!r} is no address; write it like 127.0.0.1:9843")
        return cls(host, int(port))

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def bind(self) -> list[socket.socket]:
        """Listening sockets, one for each address of the host. Raises ListenError."""
        try:
            found = socket.getaddrinfo(
                self.host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except socket.gaierror as error:
            raise ListenError(f"cannot listen on {self}: {error.strerror}") from error
        sockets: list[socket.socket] = []
        problem: OSError | None = None
        for family, _, _, _, where in dict.fromkeys(found):
            try:
                sockets.append(_listen(family, where))
            except OSError as error:
                # localhost often has an IPv6 address that the machine has not.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    for each in sockets:
                        each.close()
                    raise ListenError(self._sentence(error)) from error
                problem = error
        if not sockets:
            assert problem is not None
            raise ListenError(self._sentence(problem)) from problem
        return sockets

    def _sentence(self, error: OSError) -> str:
        what = os.strerror(error.errno or 0).lower()
        return f'cannot listen on {self}: {what}; [daemon] http sets another address, or "" for none'


def _listen(family: int, where: tuple[object, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A restart must not wait for connections of the last run to time out.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(where)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening


def is_ours(host_header: str | None, bound: Address, reached: str) -> bool:
    """Whether a request that came in at the address `reached` is meant for us.

    A page of a stranger can have its own name resolve to 127.0.0.1 and then read what answers there;
    the browser still says the stranger's name in the Host header. An address there cannot be forged
    that way, so the one that was reached is good, on whatever interface.
    """
    if host_header is None:
        return False
    name = _without_port(host_header).lower().rstrip(".")
    machine = socket.gethostname().lower().rstrip(".")
    # Not getfqdn: that asks the name service, which may not answer for a minute.
    if name in _LOCAL_NAMES | {bound.host.lower(), machine, machine.partition(".")[0]} - {""}:
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name) == ipaddress.ip_address(reached.partition("%")[0])
    return False


def _without_port(header: str) -> str:
    if header.startswith("["):
        name, closed, _ = header[1:].partition("]")
        return name if closed else ""
    return header.partition(":")[0]
