"""Values of records as JSON can have them, for golden data."""

from typing import Any


def shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shown(one) for name, one in value.items()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
