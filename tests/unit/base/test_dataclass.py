"""Our dataclasses do what the standard library's do: every example here is tried with both."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from ottla.base import dataclass as ours

ValueT = TypeVar("ValueT")


def classes(kind: Any) -> dict[str, Any]:
    """Some of each sort, made by `kind`, which is our module or the standard one."""

    @kind.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 0

    @kind.dataclass(slots=True)
    class Basket:
        owner: str
        goods: list[str] = kind.field(default_factory=list)

    @kind.dataclass(slots=True)
    class Square:
        side: int
        area: int = kind.field(init=False)
        notes: list[str] = kind.field(default_factory=list, init=False)

        def __post_init__(self) -> None:
            self.area = self.side * self.side

    @kind.dataclass(frozen=True, slots=True)
    class Nothing:
        """Without a field."""

    @kind.dataclass(frozen=True, slots=True)
    class Box(Generic[ValueT]):
        value: ValueT

    @kind.dataclass(frozen=True, slots=True)
    class Caseless:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Caseless) and other.text.lower() == self.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return f"<{self.text}>"

    return {name: made for name, made in locals().items() if isinstance(made, type)}


OURS, STANDARD = classes(ours), classes(dataclasses)


def outcome(example: Callable[[dict[str, Any]], Any], made: dict[str, Any]) -> Any:
    try:
        return repr(example(made))
    except Exception as error:
        return type(error), str(error)


EXAMPLES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "shown": lambda c: [c["Point"](1), c["Basket"]("me", ["tea"]), c["Square"](3), c["Nothing"](), c["Box"](b"")],
    "named arguments": lambda c: c["Point"](y=2, x=1),
    "an argument missing": lambda c: c["Point"](),
    "an argument too many": lambda c: c["Point"](1, 2, 3),
    "an unknown argument": lambda c: c["Point"](1, z=2),
    "a field that is no argument": lambda c: c["Square"](1, area=2),
    "equal": lambda c: [c["Point"](1, 2) == c["Point"](1, 2), c["Point"](1) == c["Point"](2), c["Point"](1) != (1, 0)],
    "equal, of no field": lambda c: c["Nothing"]() == c["Nothing"](),
    "not equal to another class": lambda c: c["Box"](1) == c["Point"](1),
    "equal in its own way": lambda c: c["Caseless"]("A") == c["Caseless"]("a"),
    "hashed": lambda c: len({c["Point"](1), c["Point"](1), c["Point"](2), c["Nothing"](), c["Box"](1)}),
    "hashed in its own way": lambda c: len({c["Caseless"]("A"), c["Caseless"]("a")}),
    "not hashed, as it may change": lambda c: hash(c["Basket"]("me")),
    "shown in its own way": lambda c: c["Caseless"]("A"),
    "frozen": lambda c: setattr(c["Point"](1), "x", 2),
    "frozen, against deletion": lambda c: delattr(c["Point"](1), "x"),
    "not frozen": lambda c: setattr(c["Basket"]("me"), "owner", "you"),
    "without other attributes": lambda c: setattr(c["Basket"]("me"), "other", 1),
    "a list for each": lambda c: c["Basket"]("me").goods is c["Basket"]("me").goods,
    "replaced": lambda c: dataclasses.replace(c["Point"](1, 2), y=3),
    "replaced, and worked out again": lambda c: dataclasses.replace(c["Square"](2), side=3),
    "fields": lambda c: [(f.name, f.type, f.init, f.default) for f in dataclasses.fields(c["Point"])],
    "as a dict": lambda c: dataclasses.asdict(c["Basket"]("me", ["tea"])),
    "copied": lambda c: [copy.copy(c["Point"](1)), copy.deepcopy(c["Basket"]("me", ["tea"]))],
    "matched": lambda c: [made.__match_args__ for made in c.values()],
    "slots": lambda c: [made.__slots__ for made in c.values()],
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_it_is_as_the_standard_library_has_it(example: Callable[[dict[str, Any]], Any]) -> None:
    assert outcome(example, OURS) == outcome(example, STANDARD)


def test_replace_is_ours_too() -> None:
    assert ours.replace(OURS["Point"](1, 2), y=3) == OURS["Point"](1, 3)
    assert ours.replace(OURS["Square"](2), side=3).area == 9


@ours.dataclass(frozen=True, slots=True)
class Pickled:
    name: str
    size: int = 0


def test_it_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled("a", 1))) == Pickled("a", 1)


def test_a_default_that_all_would_share_is_refused() -> None:
    with pytest.raises(AssertionError, match="use a default_factory"):

        @ours.dataclass(slots=True)
        class Wrong:
            names: list[str] = []  # noqa: RUF012 - it is refused


def test_making_a_class_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(
        ours, "exec", lambda source, known: (compiled.append(source), exec(source, known)), raising=False
    )
    Point = classes(ours)["Point"]  # noqa: N806 - a class
    assert compiled == []
    assert [Point(1), Point(2)] == [Point(1, 0), Point(2, 0)]
    assert len(compiled) == 1
