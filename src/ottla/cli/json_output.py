"""`--json`, which Kafka's tools do not have: what scripts need as one JSON document, under the names of our admin."""

from collections.abc import Mapping
from typing import Any, Final

from ottla.cli.options.table import Option

JSON: Final = Option("json", "Print one JSON document. Kafka's own tool does not have this option.")


def print_json(document: object) -> None:
    import json  # few calls of a tool ask for it

    print(json.dumps(as_json(document), ensure_ascii=False))


def as_json(value: Any) -> Any:
    """What an admin returns, in JSON's own types: named tuples are objects, enums their values, sets sorted lists."""
    from enum import Enum

    if isinstance(value, Enum):
        return value.name if isinstance(value.value, int) else value.value
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    return [as_json(one) for one in value] if isinstance(value, list | tuple) else value
