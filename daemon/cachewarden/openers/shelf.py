"""Books on their way: of locations that are away for now, and what the ledger remembers of the last start."""

import threading
from collections.abc import Callable, Iterable, Mapping

from cachewarden.clock import boot_id
from cachewarden.openers.book import Book
from cachewarden.openers.lastuses import News, save_news
from cachewarden.openers.memory import Memory, Row
from cachewarden.openers.processes import alive

_SEEN_BY = "fanotify"
Changes = tuple[list[Row], list[Row]]  # rows to be written, rows to be removed


class Shelf:
    """Gives out each location's book, takes it back, and brings changes to the ledger. Thread-safe.

    A location may go and come back (an automounter, a late mount); whoever opened something in it stays an
    opener meanwhile.
    """

    def __init__(self, memory: Memory, ask: Callable[[], None] | None = None) -> None:
        """`ask` has somebody else bring to `memory` what he knows; then each book is read when it is taken.

        By then we see opens ourselves. Read before that, it would lack those in between.
        """
        self._memory = memory
        self._ask = ask
        self._boot_id = boot_id()
        self._lock = threading.Lock()
        self._books: dict[str, Book] = {}
        for row in self._rows() if ask is None else ():
            self._books.setdefault(row.location, Book(row.location)).load(row)

    def _rows(self, key: str | None = None) -> Iterable[Row]:
        return map(Row._make, self._memory.load(self._boot_id, key))

    def take(self, key: str) -> Book:
        """The location's book, with all that is known from before."""
        with self._lock:
            book = self._books.pop(key, None)
        if book is None:
            book = Book(key)
        if self._ask is not None:
            self._ask()
            for row in self._rows(key):
                book.load(row)
        return book

    def put(self, book: Book) -> None:
        """Keep the book of a location that is away."""
        with self._lock:
            self._books[book.key] = book

    def sweep(self, boot_ns: int) -> None:
        """Forget processes that have ended, in what lies here."""
        with self._lock:
            for book in self._books.values():
                book.sweep(boot_ns, alive, ())

    def save(self, changes: Iterable[Changes], news: Mapping[str, News], now_ns: int) -> None:
        """Bring these changes, and news by location, and those of what lies here to the ledger.

        `now_ns` is the wall clock.
        """
        put: list[Row] = []
        drop: list[Row] = []
        with self._lock:
            for new, gone in (*changes, *(book.take_unsaved() for book in self._books.values())):
                put += new
                drop += gone
            if put or drop:
                self._memory.save(self._boot_id, put, drop, now_ns)
            here = {key: book.uses.take_news(every=True) for key, book in self._books.items()}
            save_news(self._memory, _SEEN_BY, {**news, **here}, now_ns)
