"""Transforms and predicates under Kafka's class names. A class that is not here is refused by name."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ottla.config.parse import Values
from ottla.config.setting import Setting
from ottla.connect.options import InvalidOption, read_options
from ottla.connect.transforms import casting, envelopes, fields, moments, outbox, predicates, routing, shapes
from ottla.connect.transforms.transform import PLACES, Predicate, Transform


class Kind(NamedTuple):
    """One class: its options, and what makes it."""

    class_name: str
    options: tuple[Setting, ...]
    make: Callable[[Values], Any]
    doc: str
    is_strict: bool = False
    """Whether a name that no option has is refused. Kafka's own classes ignore it; of Debezium's each is something that
    somebody asks for, and that is not there."""


_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_OF_A_PART: Final = (
    casting.Cast,
    fields.ExtractField,
    shapes.Flatten,
    routing.HeaderFrom,
    fields.HoistField,
    fields.InsertField,
    fields.MaskField,
    fields.ReplaceField,
    shapes.SetSchemaMetadata,
    moments.TimestampConverter,
)
_OF_A_RECORD: Final = (
    routing.DropHeaders,
    routing.Filter,
    routing.InsertHeader,
    routing.RegexRouter,
    moments.TimestampRouter,
    fields.ValueToKey,
)
_DEBEZIUMS: Final = {
    "io.debezium.transforms.ByLogicalTableRouter": envelopes.ByLogicalTableRouter,
    "io.debezium.transforms.ExtractNewRecordState": envelopes.ExtractNewRecordState,
    "io.debezium.transforms.outbox.EventRouter": outbox.EventRouter,
}
_OF_ALL: Final = ("type", "predicate", "negate")
_PREDICATES: Final = (predicates.HasHeaderKey, predicates.RecordIsTombstone, predicates.TopicNameMatches)


def _maker(kind: Any, place: str) -> Callable[[Values], Any]:
    return lambda options: kind(options, place)


def _row(class_name: str, kind: Any, make: Callable[[Values], Any]) -> Kind:
    return Kind(class_name, kind.OPTIONS, make, (kind.__doc__ or "").strip())


TRANSFORMS: Final = tuple(
    sorted(
        [
            *(
                _row(f"{_PACKAGE}{kind.__name__}${place.capitalize()}", kind, _maker(kind, place))
                for kind in _OF_A_PART
                for place in PLACES
            ),
            *(_row(_PACKAGE + kind.__name__, kind, kind) for kind in _OF_A_RECORD),
            *(_row(name, kind, kind)._replace(is_strict=True) for name, kind in _DEBEZIUMS.items()),
        ],
        key=lambda kind: kind.class_name,
    )
)
PREDICATES: Final = tuple(_row(f"{_PACKAGE}predicates.{kind.__name__}", kind, kind) for kind in _PREDICATES)


def make_transform(class_name: str, options: Mapping[str, str | None]) -> Transform:
    """Raises `InvalidOption`."""
    made: Transform = _made(TRANSFORMS, class_name, options)
    return made


def make_predicate(class_name: str, options: Mapping[str, str | None]) -> Predicate:
    """Raises `InvalidOption`."""
    made: Predicate = _made(PREDICATES, class_name, options)
    return made


def _refuse_unknown(kind: Kind, options: Mapping[str, str | None]) -> None:
    known = [row.name for row in kind.options]
    unknown = sorted(set(options) - {*known, *_OF_ALL})
    if unknown:
        raise InvalidOption(f"{kind.class_name} has no option {unknown[0]} here; it has {', '.join(known)}")


def _made(kinds: tuple[Kind, ...], class_name: str, options: Mapping[str, str | None]) -> Any:
    """By the whole name, or by the last word of it, as a worker's plugins are known."""
    name = class_name.strip()
    for kind in kinds:
        if name in (kind.class_name, kind.class_name.rpartition(".")[2]):
            if kind.is_strict:
                _refuse_unknown(kind, options)
            return kind.make(read_options(kind.options, options))
    raise InvalidOption(f"Class {name} could not be found.")
