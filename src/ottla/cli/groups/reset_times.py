"""Dates and durations as kafka-consumer-groups takes them, to milliseconds."""

import re
from typing import Final

from ottla.cli.failures import Terse

_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?", re.IGNORECASE
)
_SECONDS: Final = (86_400, 3_600, 60, 1)


def datetime_ms(text: str) -> int:
    """`2026-01-31T12:00:00.000`, with `Z` or `+01:00` after it, or else in UTC."""
    from datetime import UTC, datetime

    if "T" not in text:
        raise Terse(
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Terse(f'java.text.ParseException: Unparseable date: "{text}"') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """`P1DT2H30M`, as Java's Duration is written."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:5]) or text.upper().endswith("T"):
        raise Terse("Text cannot be parsed to a Duration")
    sign, *amounts, fraction = found.groups()
    total_ms = sum(int(amount) * seconds * 1000 for amount, seconds in zip(amounts, _SECONDS, strict=True) if amount)
    if fraction:
        part_ms = int(fraction.ljust(9, "0")) // 1_000_000
        total_ms += -part_ms if (amounts[-1] or "").startswith("-") else part_ms
    return -total_ms if sign == "-" else total_ms
