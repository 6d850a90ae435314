"""Messages as plain data, to be written down and compared."""

from typing import Any

from ottla.wire.message import WireStruct

LEFT_OUT = {"throttle_time_ms", "unknown_tags"}


def plain(value: Any) -> Any:
    """A message without what differs from run to run: topic ids are told from no id, not from each other."""
    if isinstance(value, WireStruct):
        return {name: plain(getattr(value, name)) for name in value.__slots__ if name not in LEFT_OUT}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return "an id" if any(value) else "no id"
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
