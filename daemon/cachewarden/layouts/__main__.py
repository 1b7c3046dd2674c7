"""`python -m cachewarden.layouts PAGE`: writes the two tables of the page anew (`docs/layouts.md`)."""

import sys

from cachewarden.layouts.reference import with_tables


def main(path: str) -> None:
    """Rewrite the file in place. Raises OSError, and ValueError when it lacks the tables' marks."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    written = with_tables(text)
    if written != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(written)


if __name__ == "__main__":
    main(sys.argv[1])
