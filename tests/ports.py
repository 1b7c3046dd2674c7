"""Ports for the servers that tests start."""

import contextlib
import random
import socket


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has now, and that no outgoing connection takes before a server does.

    It lies below those that the kernel gives to such connections (ip(7), ip_local_port_range), of which the
    tests beside us make many. And it is drawn by lot: they look for ports, too.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    while True:
        port = random.randrange(first // 2, first)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
