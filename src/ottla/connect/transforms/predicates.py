"""Kafka's predicates."""

from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import NotEmpty
from ottla.config.parse import Values
from ottla.config.setting import MEDIUM, REQUIRED, Setting, Text
from ottla.connect.data.records import Records
from ottla.connect.transforms.java_patterns import option


def _same(answer: bool, records: Records) -> Any:
    return pa.array([answer] * len(records), pa.bool_())


class HasHeaderKey:
    """Whether a record has a header of this name."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("name", REQUIRED, NotEmpty(), MEDIUM, "The name of the header.", acted_on=True),
    )

    def __init__(self, options: Values) -> None:
        self._name = options.text("name")

    def holds(self, records: Records) -> Any:
        found = _same(False, records)
        for header in records.headers:
            if header.key == self._name:
                found = _same(True, records) if header.present is None else pc.or_(found, header.present)
        return found


class RecordIsTombstone:
    """Whether a record has no value."""

    OPTIONS: Final[tuple[Setting, ...]] = ()

    def __init__(self, options: Values) -> None:
        pass

    def holds(self, records: Records) -> Any:
        return records.value.is_null()


class TopicNameMatches:
    """Whether the whole name of the topic matches."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("pattern", REQUIRED, NotEmpty(), MEDIUM, "The regular expression.", acted_on=True),
    )

    def __init__(self, options: Values) -> None:
        self._pattern = option("pattern", options.text("pattern"))

    def holds(self, records: Records) -> Any:
        return _same(self._pattern.fullmatch(records.topic) is not None, records)
