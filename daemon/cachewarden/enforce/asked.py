"""A time that knows whether anybody calculated with it."""

from typing import Self


class AskedTime(int):
    """Nanoseconds, as `int`. `asked` counts how often they were compared with, or taken from, something.

    A layout is given the time because partial downloads age. Most locations have none: what a layout said
    of them without asking is as true an hour later, and need not be found out again.
    """

    asked: int

    def __new__(cls, ns: int) -> Self:
        made = super().__new__(cls, ns)
        made.asked = 0
        return made

    def __sub__(self, other: int) -> int:
        self.asked += 1
        return int.__sub__(self, other)

    def __rsub__(self, other: int) -> int:
        self.asked += 1
        return int.__rsub__(self, other)

    def __add__(self, other: int) -> int:
        self.asked += 1
        return int.__add__(self, other)

    __radd__ = __add__

    def __lt__(self, other: int) -> bool:
        self.asked += 1
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        self.asked += 1
        return int.__le__(self, other)

    def __gt__(self, other: int) -> bool:
        self.asked += 1
        return int.__gt__(self, other)

    def __ge__(self, other: int) -> bool:
        self.asked += 1
        return int.__ge__(self, other)
