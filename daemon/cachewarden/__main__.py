"""`python -m cachewarden`."""

from cachewarden.cli import main

main()
