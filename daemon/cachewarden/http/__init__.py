"""The HTTP sides: metrics, health and page over TCP, from the last snapshot; the control socket."""

from cachewarden.http.address import Address
from cachewarden.http.control import ControlServer, Question
from cachewarden.http.page import render_page
from cachewarden.http.peer import Peer
from cachewarden.http.reply import Reply, refusal
from cachewarden.http.server import Content, HttpServer
from cachewarden.http.unix import UnixSocket

__all__ = [
    "Address",
    "Content",
    "ControlServer",
    "HttpServer",
    "Peer",
    "Question",
    "Reply",
    "UnixSocket",
    "refusal",
    "render_page",
]
