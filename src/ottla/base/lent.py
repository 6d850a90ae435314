"""Bytes that are only lent: a view of a buffer that is used again, for other bytes, when its borrower returns.

All connections of a node receive into one buffer. What a handler is given lies there, and so do the records of a
request. They are lent until the handler returns. Who keeps any of them copies first (`keep`), and keeps nothing that
leads back to them: a view of a view is lent too. What was found out about them (a header, a length) is numbers, and may
be kept.

This rule was broken once. A request that waited kept its views, and its batches were stored with the bytes of other
clients. So three things hold the rule now:

- types: `Lent` is no `Buffer` for a type checker. It can be looked at, copied, and written to a file, not stored;
- poison: with OTTLA_POISON=1 in the environment (all tests, the simulator, `make chaos`) a buffer is overwritten when
  it is given back. A view that was kept shows nonsense at once, and not only when another client happens to send;
- the log: it computes a batch's checksum again where it writes it (`ottla.log.segment`).
"""

import os
from typing import TYPE_CHECKING, Final, overload

if TYPE_CHECKING:

    class Lent:
        """A `memoryview`, for as long as the borrower runs."""

        def __len__(self) -> int: ...
        @overload
        def __getitem__(self, at: int, /) -> int: ...
        @overload
        def __getitem__(self, at: slice, /) -> "Lent": ...
        def __getitem__(self, at: int | slice, /) -> "int | Lent": ...
        def __setitem__(self, at: slice, data: bytes) -> None: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...
        @property
        def obj(self) -> object: ...
        @property
        def readonly(self) -> bool: ...
else:
    Lent = memoryview

Buffer = bytes | bytearray | memoryview
"""Bytes that may be kept, as far as their owner goes."""
Seen = Lent | Buffer
"""What a function takes that only looks at bytes, or writes them out before it returns."""
Writable = Lent | bytearray | memoryview
"""The same for a function that also changes them in place."""

POISON_VARIABLE: Final = "OTTLA_POISON"
_POISON: Final = b"\xdb"

_poisons = os.environ.get(POISON_VARIABLE) == "1"


def lend(view: memoryview) -> Lent:
    """The same view, of bytes that the caller has the say over."""
    return view  # type: ignore[return-value]  # that it is one is the type checker's secret


def keep(lent: Seen) -> bytearray:
    """A copy, which is the caller's own."""
    return bytearray(lent)


def give_back(buffer: bytearray | memoryview, count: int) -> None:
    """The first `count` bytes of a shared buffer are nobody's any more: under poison they are overwritten."""
    if _poisons:
        buffer[:count] = _POISON * count


def poison() -> None:
    """From here on, in this process."""
    global _poisons
    _poisons = True
