"""Where to begin in a partition without a position: `auto.offset.reset`, with times since KIP-1106."""

import re
from typing import Final, NamedTuple

from ottla.base.errors import ClientError

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1
_DURATION_PREFIX: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


class OffsetReset(NamedTuple):
    """One strategy. `none` has neither a timestamp nor a duration."""

    name: str
    timestamp: int | None = None
    """Of ListOffsets, which has numbers for the two ends."""
    duration_ms: int | None = None

    @property
    def is_none(self) -> bool:
        return self.timestamp is None and self.duration_ms is None

    def timestamp_at(self, now_ms: int) -> int:
        """What ListOffsets is asked for."""
        if self.duration_ms is not None:
            return max(now_ms - self.duration_ms, 0)
        assert self.timestamp is not None, "nothing to reset to"
        return self.timestamp


EARLIEST: Final = OffsetReset("earliest", EARLIEST_TIMESTAMP)
LATEST: Final = OffsetReset("latest", LATEST_TIMESTAMP)
NONE: Final = OffsetReset("none")


def parse_offset_reset(text: str) -> OffsetReset:
    """`earliest`, `latest`, `none`, or `by_duration:` with an ISO 8601 duration, as `by_duration:PT1H30M`."""
    lowered = text.lower()
    for known in (EARLIEST, LATEST, NONE):
        if lowered == known.name:
            return known
    if lowered.startswith(_DURATION_PREFIX):
        return OffsetReset(lowered, duration_ms=parse_duration_ms(text[len(_DURATION_PREFIX) :]))
    raise ClientError(f"auto.offset.reset {text!r} is none of earliest, latest, none and by_duration:<duration>")


def parse_duration_ms(text: str) -> int:
    """An ISO 8601 duration of days and smaller, as Java's `Duration` reads it; not negative."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ClientError(f"{text!r} is not a duration such as PT1H, P7D or PT0.5S")
    days, hours, minutes = (int(match[unit] or 0) for unit in ("days", "hours", "minutes"))
    return int(((days * 24 + hours) * 60 + minutes) * 60_000 + float(match["seconds"] or 0) * 1000)
