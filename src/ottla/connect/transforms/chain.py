"""A connector's transforms, one behind the other, each for all records or for those that a predicate chooses.

    chain = make_chain({"transforms": "route", "transforms.route.type": "…RegexRouter", …})
    batches = chain.apply(batches)

What a transform refuses is told with the transform's name and class and with the record: `TransformFailed`. It has the
record's position, so that the caller can leave that record out, or send it to a dead-letter topic, and go on.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.connect.data.records import Records
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption, invalid
from ottla.connect.transforms.by_name import make_predicate, make_transform
from ottla.connect.transforms.transform import Predicate, Transform


class TransformFailed(DataError):
    """A record that a transform refused. `position` is the record's; None if all of its batch are to blame."""

    def __init__(self, message: str, position: int | None) -> None:
        super().__init__(message)
        self.position = position


class Stage(NamedTuple):
    name: str
    class_name: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False


class Chain:
    def __init__(self, stages: Iterable[Stage]) -> None:
        self._stages = tuple(stages)

    def apply(self, batches: list[Records]) -> list[Records]:
        """What becomes of the batches. Raises `TransformFailed`."""
        for stage in self._stages:
            batches = [made for records in batches if len(records) for made in _applied(stage, records)]
        return batches


def _applied(stage: Stage, records: Records) -> list[Records]:
    chosen: Records | None = records
    others: Records | None = None
    if stage.predicate is not None:
        chosen, others = records.split(stage.predicate.holds(records))
        if stage.negate:
            chosen, others = others, chosen
    made = [] if others is None else [others]
    if chosen is None:
        return made
    try:
        return made + stage.transform.apply(chosen)
    except DataError as error:
        row = error.row
        where = f"records for topic {chosen.topic}" if row is None else chosen.where(row)
        position = None if row is None else chosen.position[row].as_py()
        raise TransformFailed(
            f"transform {stage.name} ({stage.class_name}) refused {where}: {error}", position
        ) from None


def make_chain(config: Mapping[str, str | None]) -> Chain:
    """The transforms that a connector's configuration names. Raises `InvalidOption`."""
    predicates: dict[str, Predicate] = {}
    for name in _names(config, "predicates"):
        kind, options = _options(config, f"predicates.{name}.")
        predicates[name] = make_predicate(kind, options)
    stages: list[Stage] = []
    for name in _names(config, "transforms"):
        prefix = f"transforms.{name}."
        kind, options = _options(config, prefix)
        chosen = options.get("predicate")
        negate = (options.get("negate") or "false").strip().lower()
        if negate not in ("true", "false"):
            raise invalid(f"{prefix}negate", options["negate"], "Expected value to be either true or false")
        if chosen is not None and chosen.strip() not in predicates:
            raise invalid(f"{prefix}predicate", chosen, "there is no predicate of this name in `predicates`")
        predicate = None if chosen is None else predicates[chosen.strip()]
        stages.append(Stage(name, kind, make_transform(kind, options), predicate, negate == "true"))
    return Chain(stages)


def _names(config: Mapping[str, str | None], key: str) -> list[str]:
    names = [name.strip() for name in (config.get(key) or "").split(",") if name.strip()]
    if len(set(names)) < len(names):
        raise invalid(key, f"[{', '.join(names)}]", "Duplicate alias provided.")
    return names


def _options(config: Mapping[str, str | None], prefix: str) -> tuple[str, dict[str, str | None]]:
    options = {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}
    kind = options.get("type")
    if kind is None:
        raise InvalidOption(f'Missing required configuration "{prefix}type" which has no default value.')
    return kind.strip(), options
