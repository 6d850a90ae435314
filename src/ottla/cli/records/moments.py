"""Times as people write them: `2026-03-01T12:00`, `1772366400000`, or `10m` for ten minutes ago."""

from argparse import ArgumentTypeError

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_FIRST_MILLISECONDS = 100_000_000_000
"""Smaller numbers are seconds: this many would be the year 5138, and as milliseconds it is 1973."""


def parse_moment(text: str, now_ms: int) -> int:
    """Milliseconds since 1970. A time without a zone is local. Raises `ArgumentTypeError`."""
    from datetime import datetime

    if text == "now":
        return now_ms
    if text.isdecimal():
        number = int(text)
        return number if number >= _FIRST_MILLISECONDS else number * 1000
    count = text.rstrip("mshdw")
    unit = _UNITS_MS.get(text[len(count) :])
    if unit is not None and count.replace(".", "", 1).isdecimal():
        return now_ms - round(float(count) * unit)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        message = f"{text!r} is not a time: it must be like 2026-03-01T12:00, 1772366400000, or 10m for ten minutes ago"
        raise ArgumentTypeError(message) from None


def moment(text: str) -> int:
    """For argparse."""
    import time

    return parse_moment(text, time.time_ns() // 1_000_000)


def shown(timestamp_ms: int) -> str:
    """Local time, to the millisecond."""
    import time

    if timestamp_ms < 0:
        return "-"
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp_ms // 1000))
    return f"{moment}.{timestamp_ms % 1000:03d}"
