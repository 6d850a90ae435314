"""PostgreSQL's text of one value, read in Python: for what Arrow cannot read in whole columns.

The session says `DateStyle=ISO`, `IntervalStyle=postgres`, `TimeZone=UTC`, `bytea_output=hex`, `lc_monetary=C`.
"""

import re
from typing import Final

from ottla.connect.errors import DataError

DAY_US: Final = 86_400_000_000
DATE_INFINITY: Final = (1 << 31) - 1
"""What the date `infinity` becomes, and with the other sign less one `-infinity`: as PostgreSQL keeps them itself."""
TIMESTAMP_INFINITY_US: Final = 9_223_372_036_825_200_000
TIMESTAMP_MINUS_INFINITY_US: Final = -9_223_372_036_832_400_000
"""Debezium's, which are those of the JDBC driver."""

_DATE: Final = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( BC)?")
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE: Final = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
_MOMENT: Final = re.compile(r"(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)([+-]\d\d(?::\d\d(?::\d\d)?)?)?( BC)?")
_SPAN: Final = re.compile(
    r"(?:(-?\+?\d+) years? ?)?(?:(-?\+?\d+) mons? ?)?(?:(-?\+?\d+) days? ?)?"
    r"(?:([+-])?(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?"
)
_PAIR: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|"((?:[^"\\]|\\.)*)")(?:, )?', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def days(text: str) -> int:
    """Days since 1970 of a date of the Gregorian calendar, which PostgreSQL has for all time."""
    if text in ("infinity", "-infinity"):
        return DATE_INFINITY if text == "infinity" else -DATE_INFINITY - 1
    found = _DATE.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no date of PostgreSQL's")
    return _days(int(found[1]), int(found[2]), int(found[3]), before_christ=found[4] is not None)


def _days(year: int, month: int, day: int, *, before_christ: bool) -> int:
    if before_christ:
        year = 1 - year
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def micros(text: str) -> int:
    """Microseconds of the day."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no time of PostgreSQL's")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
    return seconds * 1_000_000 + int((found[4] or "").ljust(6, "0"))


def epoch_micros(text: str) -> int:
    """Microseconds since 1970 of a timestamp, with a zone or without (then as if it were UTC)."""
    if text in ("infinity", "-infinity"):
        return TIMESTAMP_INFINITY_US if text == "infinity" else TIMESTAMP_MINUS_INFINITY_US
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no timestamp of PostgreSQL's")
    shift_us = _zone_us(found[3]) if found[3] else 0
    return days(found[1] + (found[4] or "")) * DAY_US + micros(found[2]) - shift_us


def _zone_us(text: str) -> int:
    found = _ZONE.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no time zone of PostgreSQL's")
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60 + int(found[4] or 0)
    return (seconds if found[1] == "+" else -seconds) * 1_000_000


def iso_time(text: str) -> str:
    """The text of a timetz as ISO 8601 in UTC."""
    split = max(text.rfind("+"), text.rfind("-"))
    moved = micros(text[:split]) - _zone_us(text[split:])
    return clock(moved % DAY_US) + "Z"


def clock(of_day_us: int) -> str:
    """`13:14:15.5`: as many digits as it needs."""
    seconds, fraction = divmod(of_day_us, 1_000_000)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return shown if not fraction else shown + f".{fraction:06}".rstrip("0")


def iso_moment(epoch_us: int, digits: int | None = None) -> str:
    """`2024-02-29T13:14:15.5Z`, with so many digits of a second, or with as many as it needs. Years beyond 9999 have a
    sign, as ISO 8601 wants it."""
    day, of_day_us = divmod(epoch_us, DAY_US)
    if digits is None:
        shown = clock(of_day_us)
    else:
        seconds, fraction = divmod(of_day_us, 1_000_000)
        shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        shown += f".{fraction:06}"[: digits + 1] if digits else ""
    return f"{iso_date(day)}T{shown}Z"


def iso_date(day: int) -> str:
    """`2024-02-29`, without the zone."""
    day += 719_468
    era, of_era = divmod(day, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    part = (5 * of_year + 2) // 153
    month = part + (3 if part < 10 else -9)
    year = era * 400 + year_of_era + (month <= 2)
    shown = f"{abs(year):04}"
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{shown}-{month:02}-{of_year - (153 * part + 2) // 5 + 1:02}"


def span(text: str) -> tuple[int, int, int, int]:
    """Years, months, days and microseconds of an interval. Infinite ones (PostgreSQL 17) are refused."""
    found = _SPAN.fullmatch(text)
    if found is None or not text:
        raise DataError(f"{text!r} is no interval that a record can have")
    years, months, span_days = (int(found[place] or 0) for place in (1, 2, 3))
    hours, minutes, seconds = (int(found[place] or 0) for place in (5, 6, 7))
    us = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((found[8] or "").ljust(6, "0"))
    return years, months, span_days, -us if found[4] == "-" else us


def span_micros(text: str) -> int:
    """Microseconds, a month being a twelfth of 365.25 days, as Debezium has it."""
    years, months, span_days, us = span(text)
    # 30.4375 days are a whole number of microseconds.
    return (years * 12 + months) * 2_629_800_000_000 + span_days * DAY_US + us


def iso_span(text: str) -> str:
    """`P1Y2M3DT4H5M6.789S`; every part is there, as Debezium writes it."""
    years, months, span_days, us = span(text)
    sign = "-" if us < 0 else ""
    seconds, fraction = divmod(abs(us), 1_000_000)
    shown = str(seconds % 60) + (f".{fraction:06}".rstrip("0") if fraction else "")
    hours, minutes = seconds // 3600, seconds // 60 % 60

    def signed(number: int | str) -> str:
        return f"{sign}{number}" if str(number) != "0" else "0"

    return f"P{years}Y{months}M{span_days}DT{signed(hours)}H{signed(minutes)}M{signed(shown)}S"


def array_items(text: str) -> list[str | None]:
    """The items of an array. One of several dimensions gives its items in order; bounds that it begins with are
    skipped."""
    if text[:1] == "[":
        text = text[text.index("=") + 1 :]
    if '"' not in text and text[1:2] != "{":
        return [None if item == "NULL" else item for item in text[1:-1].split(",")] if len(text) > 2 else []
    items: list[str | None] = []
    at, end = 0, len(text)
    while at < end:
        letter = text[at]
        if letter in "{},":
            at += 1
        elif letter == '"':
            at += 1
            parts: list[str] = []
            while (letter := text[at]) != '"':
                if letter == "\\":
                    at += 1
                    letter = text[at]
                parts.append(letter)
                at += 1
            items.append("".join(parts))
            at += 1
        else:
            stop = at
            while text[stop] not in "{},":
                stop += 1
            item = text[at:stop]
            items.append(None if item == "NULL" else item)
            at = stop
    return items


def hstore_pairs(text: str) -> list[tuple[str, str | None]]:
    """Keys and values, in PostgreSQL's order."""
    pairs: list[tuple[str, str | None]] = []
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            raise DataError(f"{text!r} is no hstore of PostgreSQL's")
        value = found[2]
        pairs.append((_ESCAPED.sub(r"\1", found[1]), None if value is None else _ESCAPED.sub(r"\1", value)))
        at = found.end()
    return pairs


def bits(text: str) -> bytes:
    """Little-endian, without zeros at the end."""
    number = int(text, 2) if text else 0
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def sparse(text: str) -> tuple[int, list[tuple[int, float]]]:
    """Dimensions, and places with their values, of `{1:1.5,3:-2}/5`."""
    inner, _, dimensions = text.partition("}/")
    pairs = [item.split(":") for item in inner[1:].split(",") if item]
    return int(dimensions), [(int(place), float(value)) for place, value in pairs]
