"""Objects of an application's own classes from plain values (dict, list, str, …) and back.

`maker(type)` looks at annotations once and gives a function that makes the object: dataclasses, named tuples,
TypedDicts, enums and pydantic's models, within each other, in lists, dicts and optionals. `plain` is the way back.
"""

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

Maker = Callable[[Any], Any]


def maker(wanted: Any) -> Maker | None:
    """What makes a `wanted` of a plain value, or None if a plain value is one already."""
    return _maker(wanted, {})


def _maker(wanted: Any, known: dict[Any, "_Late"]) -> Maker | None:
    origin = typing.get_origin(wanted)
    if origin is typing.Annotated:
        return _maker(typing.get_args(wanted)[0], known)
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(wanted), known)
    if origin in (list, tuple, set, frozenset):
        return _sequence(origin, typing.get_args(wanted), known)
    if origin in (dict, Mapping):
        arguments = typing.get_args(wanted)
        inner = _maker(arguments[1], known) if len(arguments) == 2 else None
        return (lambda value: {key: inner(one) for key, one in value.items()}) if inner is not None else None
    if not isinstance(wanted, type):
        return None
    if wanted in known:
        return known[wanted]
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate  # type: ignore[no-any-return]  # pydantic's
    if issubclass(wanted, enum.Enum):
        return _enum(wanted)
    if dataclasses.is_dataclass(wanted):
        late = known[wanted] = _Late()
        names = {field.name for field in dataclasses.fields(wanted) if field.init}
        late.made = _record(wanted, names, known)
        return late.made
    if issubclass(wanted, tuple) and hasattr(wanted, "_fields"):
        late = known[wanted] = _Late()
        late.made = _record(wanted, set(wanted._fields), known)
        return late.made
    return None


class _Late:
    """A maker that is not finished yet: a class that holds itself."""

    def __init__(self) -> None:
        self.made: Maker | None = None

    def __call__(self, value: Any) -> Any:
        assert self.made is not None
        return self.made(value)


def _record(wanted: Any, names: set[str], known: dict[Any, _Late]) -> Maker:
    hints = typing.get_type_hints(wanted, include_extras=True)
    makers = {name: made for name in names if (made := _maker(hints.get(name), known)) is not None}

    def make(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        given = {name: one for name, one in value.items() if name in names}
        for name, one in makers.items():
            if name in given:
                given[name] = one(given[name])
        return wanted(**given)

    return make


def _union(options: tuple[Any, ...], known: dict[Any, _Late]) -> Maker | None:
    makers = [made for one in options if one is not type(None) and (made := _maker(one, known)) is not None]
    if not makers:
        return None
    if len(makers) == 1:
        only = makers[0]
        return lambda value: None if value is None else only(value)

    def make(value: Any) -> Any:
        if value is None:
            return None
        for one in makers:
            try:
                made = one(value)
            except (TypeError, ValueError, KeyError):
                continue
            if made is not value:
                return made
        return value

    return make


def _sequence(origin: Any, arguments: tuple[Any, ...], known: dict[Any, _Late]) -> Maker | None:
    inner = _maker(arguments[0], known) if arguments else None
    if inner is None:
        return None if origin is list else origin
    return lambda value: origin(inner(one) for one in value)


def _enum(wanted: type[enum.Enum]) -> Maker:
    by_name = wanted.__members__

    def make(value: Any) -> Any:
        found = by_name.get(value) if isinstance(value, str) else None
        return found if found is not None else wanted(value)

    return make


def plain(value: Any) -> Any:
    """The value made of dict, list, str, numbers and the like alone, for formats that know nothing else (JSON)."""
    if value is None or (isinstance(value, str | int | float | bool) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [plain(one) for one in value]
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, str | int | float) else value.name
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return {name: plain(one) for name, one in zip(value._fields, value, strict=True)}  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return [plain(one) for one in value]
    return value
