"""Which requests are handled in parts; such a request as several of few entries each, in the order of its entries.

An innermost entry is one of the last list that a division names, or an outer one that has nothing in that list: a group
that is asked for all of its topics. The structs around it are copied into every part that has some of their entries;
the entries themselves are shared with the request.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ottla.apis.description import Division
from ottla.apis.table import APIS
from ottla.wire.message import Message, like

MOST_BYTES_AT_ONCE: Final = 8 << 10
MOST_ENTRIES_AT_ONCE: Final = 500
"""A request that has more of both is handled in parts."""
ENTRIES_PER_PART = 100

_Entry = tuple[tuple[Any, ...], Any]
"""An innermost entry, after the structs around it."""


def division_of(api_key: int, request: Message) -> Division | None:
    """How the request is to be divided; None if it is handled as it is."""
    row = APIS.get(api_key)
    for division in row.divisions if row is not None else ():
        owners: Sequence[Any] = (request,)
        for name in division.asked:
            entries: list[Any] = []
            for owner in owners:
                entries += getattr(owner, name) or ()
                if len(entries) > MOST_ENTRIES_AT_ONCE:
                    return division
            owners = entries
    return None


def divided(division: Division, request: Message) -> Iterator[Message | None]:
    """The parts, made one by one; None is a pause without one."""
    if division.named_once is None:
        entries = _entries(request, division.asked)
    else:
        counted: list[_Entry] = []
        times = Counter[Any]()
        for entry in _entries(request, division.asked):
            counted.append(entry)
            times[division.named_once(*entry)] += 1
            if not len(counted) % ENTRIES_PER_PART:
                yield None
        if len(times) < len(counted):
            yield from _with_repeated(division, request, counted, times)
            return
        entries = iter(counted)
    part = _Part(division, request)
    for entry in entries:
        part.add(entry)
        if part.count == ENTRIES_PER_PART:
            yield part.message
            part = _Part(division, request)
    if part.count:
        yield part.message


def _entries(owner: Any, asked: tuple[str, ...], around: tuple[Any, ...] = ()) -> Iterator[_Entry]:
    for entry in getattr(owner, asked[0]) or ():
        if len(asked) > 1 and getattr(entry, asked[1]):
            yield from _entries(entry, asked[1:], (*around, entry))
        else:
            yield around, entry


def _with_repeated(
    division: Division, request: Message, entries: list[_Entry], times: Counter[Any]
) -> Iterator[Message | None]:
    """First what is named once, then what is not: of that at least two of a name come to a part, so that it is seen."""
    assert division.named_once is not None
    part = _Part(division, request)
    repeated: dict[Any, list[_Entry]] = {}
    for number, entry in enumerate(entries):
        name = division.named_once(*entry)
        if times[name] > 1:
            repeated.setdefault(name, []).append(entry)
            if not number % ENTRIES_PER_PART:
                yield None
            continue
        part.add(entry)
        if part.count == ENTRIES_PER_PART:
            yield part.message
            part = _Part(division, request)
    for same in repeated.values():
        start = 0
        while start < len(same):
            end = start + ENTRIES_PER_PART
            if len(same) - end < 2:
                end = len(same)
            for entry in same[start:end]:
                part.add(entry)
            start = end
            if part.count >= ENTRIES_PER_PART:
                yield part.message
                part = _Part(division, request)
    if part.count:
        yield part.message


class _Part:
    """One part in the making. `_open` are the structs around the last entry, as in the request and as in the part."""

    def __init__(self, division: Division, request: Message) -> None:
        self.count = 0
        self._asked = division.asked
        self.message = like(request)
        setattr(self.message, self._asked[0], [])
        self._open: list[tuple[Any, Any]] = []

    def add(self, entry: _Entry) -> None:
        around, innermost = entry
        owner: Any = self.message
        for depth, struct in enumerate(around):
            if depth == len(self._open) or self._open[depth][0] is not struct:
                copy = like(struct)
                setattr(copy, self._asked[depth + 1], [])
                getattr(owner, self._asked[depth]).append(copy)
                self._open[depth:] = [(struct, copy)]
            owner = self._open[depth][1]
        del self._open[len(around) :]
        getattr(owner, self._asked[len(around)]).append(innermost)
        self.count += 1
