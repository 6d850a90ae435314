"""Transforms and predicates under Kafka's class names. A class that is not here is refused by name."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ottla.config.parse import Values
from ottla.config.setting import Setting
from ottla.connect.options import InvalidOption, read_options
from ottla.connect.transforms import fields, predicates, routing, shapes
from ottla.connect.transforms.transform import PLACES, Predicate, Transform


class Kind(NamedTuple):
    """One class: its options, and what makes it."""

    class_name: str
    options: tuple[Setting, ...]
    make: Callable[[Values], Any]
    doc: str


_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_OF_A_PART: Final = (
    fields.ExtractField,
    shapes.Flatten,
    routing.HeaderFrom,
    fields.HoistField,
    fields.InsertField,
    fields.MaskField,
    fields.ReplaceField,
    shapes.SetSchemaMetadata,
)
_OF_A_RECORD: Final = (routing.DropHeaders, routing.Filter, routing.RegexRouter, fields.ValueToKey)
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


def _made(kinds: tuple[Kind, ...], class_name: str, options: Mapping[str, str | None]) -> Any:
    """By the whole name, or by the last word of it, as a worker's plugins are known."""
    name = class_name.strip()
    for kind in kinds:
        if name in (kind.class_name, kind.class_name.rpartition(".")[2]):
            return kind.make(read_options(kind.options, options))
    raise InvalidOption(f"Class {name} could not be found.")
