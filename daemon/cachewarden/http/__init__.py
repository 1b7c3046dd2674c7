"""The TCP side: metrics, health, readiness and the status page, all from the last snapshot."""

from cachewarden.http.address import Address
from cachewarden.http.page import render_page
from cachewarden.http.server import Content, HttpServer

__all__ = ["Address", "Content", "HttpServer", "render_page"]
