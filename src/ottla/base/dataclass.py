"""`dataclass`, `field` and `replace` as in the standard library's `dataclasses`, for classes that are made sooner.

Theory of operation. The standard library writes the source of six methods for every class and compiles it, which was a
third of all that a node did before its first reply. Here the classes share their methods, and `__init__`, which is the
one that has to be fast, is compiled when the first object of a class is made. To its users a class is the same: it
compares, hashes, shows, copies and pickles itself in the same way, and `dataclasses.fields`, `asdict` and `replace`
take it. Type checkers are told that it is the standard one.

Only what is used here is here: slots always, no inheritance of fields, no class variables.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from ottla.base.late_init import compile_init_later

__all__ = ["dataclass", "field", "replace"]

ClassT = TypeVar("ClassT", bound=type)

_MISSING: Any = object()


class _Field(NamedTuple):
    default: Any = _MISSING
    default_factory: Callable[[], Any] = _MISSING
    init: bool = True


def _field(*, default_factory: Callable[[], Any] = _MISSING, init: bool = True) -> _Field:
    return _Field(_MISSING, default_factory, init)


def _dataclass(*, slots: bool, frozen: bool = False) -> Callable[[ClassT], ClassT]:
    assert slots, "an attribute that is no field would be a mistake"
    return lambda cls: _with_slots(cls, frozen)


def _with_slots(cls: ClassT, frozen: bool) -> ClassT:
    """The class again: slots can only be had from the beginning."""
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    fields = {name: _as_field(body.pop(name, _MISSING)) for name in cls.__annotations__}
    names = tuple(fields)
    shared = {**_METHODS, **(_FROZEN_METHODS if frozen else {"__hash__": None})}
    if "__eq__" in body and body.get("__hash__", _MISSING) is None:
        del body["__hash__"]  # Python's doing, not the author's.
    made: Any = type(cls)(
        cls.__name__,
        cls.__bases__,
        {
            **shared,
            **body,
            "__slots__": names,
            "__match_args__": tuple(name for name in names if fields[name].init),
            "__qualname__": cls.__qualname__,
            "__ottla_fields__": fields,
            "__ottla_values__": attrgetter(*names) if names else _nothing,
        },
    )
    compile_init_later(made, lambda: _compile_init(made, fields, frozen))
    return cast(ClassT, made)


def _as_field(given: Any) -> _Field:
    if isinstance(given, _Field):
        return given
    assert type(given).__hash__ is not None, f"all objects would share {given!r}: use a default_factory"
    return _Field(given)


def _nothing(_: object) -> tuple[()]:
    return ()


# The constructor


def _compile_init(cls: Any, fields: dict[str, _Field], frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_missing": _MISSING, "__name__": cls.__module__}
    arguments, lines = ["self"], []
    for name, (default, factory, init) in fields.items():
        value = name
        if factory is not _MISSING:
            known[f"_make_{name}"] = factory
            value = f"_make_{name}() if {name} is _missing else {name}" if init else f"_make_{name}()"
            arguments += [f"{name}=_missing"] if init else []
        elif default is not _MISSING:
            known[f"_default_{name}"] = default
            arguments += [f"{name}=_default_{name}"]
        elif init:
            arguments += [name]
        else:
            continue  # `__post_init__` sees to it.
        if frozen:
            known[f"_set_{name}"] = getattr(cls, name).__set__
            lines += [f"_set_{name}(self, {value})"]
        else:
            lines += [f"self.{name} = {value}"]
    if hasattr(cls, "__post_init__"):
        lines += ["self.__post_init__()"]
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


# The methods that all share


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__class__.__ottla_values__
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(self.__class__.__ottla_values__(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__ottla_fields__)
    return f"{self.__class__.__qualname__}({shown})"


def _set_nothing(self: object, name: str, value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete_nothing(self: object, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__ottla_fields__]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__ottla_fields__, state, strict=True):
        object.__setattr__(self, name, value)


class _StandardFields:
    """What the functions of `dataclasses` look for, made by the standard library when they do."""

    def __get__(self, _: object, cls: Any) -> dict[str, Any]:
        import dataclasses

        rows = []
        for name, (default, factory, init) in cls.__ottla_fields__.items():
            given = {"default": default, "default_factory": factory}
            field = dataclasses.field(init=init, **{key: one for key, one in given.items() if one is not _MISSING})  # noqa: TID251
            rows.append((name, cls.__annotations__[name], field))
        made: Any = dataclasses.make_dataclass(cls.__name__, rows)
        return dict(made.__dataclass_fields__)


_METHODS: dict[str, Any] = {
    "__eq__": _eq,
    "__repr__": _repr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
    "__dataclass_fields__": _StandardFields(),
}
_FROZEN_METHODS: dict[str, Any] = {"__hash__": _hash, "__setattr__": _set_nothing, "__delattr__": _delete_nothing}


def _replace(known: Any, /, **changes: Any) -> Any:
    """A copy of an object with some of its fields changed."""
    for name, given in known.__ottla_fields__.items():
        if given.init and name not in changes:
            changes[name] = getattr(known, name)
    return known.__class__(**changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace  # noqa: TID251 - what they stand for
else:
    dataclass, field, replace = _dataclass, _field, _replace
