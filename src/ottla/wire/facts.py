"""The schema facts of Apache Kafka 4.3.1: package data, read from disk when first asked for."""

import json
from functools import cache
from pkgutil import get_data
from typing import Any


@cache
def load(name: str) -> Any:
    """The parsed content of `facts/<name>.json`."""
    data = get_data("ottla.wire", f"facts/{name}.json")
    assert data is not None, "package data is always readable"
    return json.loads(data)
