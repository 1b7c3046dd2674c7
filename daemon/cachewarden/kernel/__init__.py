"""Bindings to Linux calls that the standard library lacks; each names its man page and first kernel."""
