"""One setting as DescribeConfigs shows it: its value, where that comes from, and what would count without it.

The synonyms of an entry are all places that give it a value, the one that counts first: the resource's own setting,
what this broker was given, what all brokers were given, the file, the default. A setting may have more than one name
(`log.retention.ms`, `.minutes`, `.hours`); places that only have another name are left out until the setting's own
name is reached, so that of `log.retention.ms` nothing is shown while only `log.retention.hours` is set.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.config.scopes import Scope, settings
from ottla.config.setting import REQUIRED, Dynamic, Setting
from ottla.config.tables import broker
from ottla.config.values import Type, Value, value_text
from ottla.machines.metadata.image.configs_image import ConfigsImage
from ottla.serving.node_settings import NodeSettings, broker_row, is_for_one_listener
from ottla.wire.messages import DescribeConfigsResponse

Entry = DescribeConfigsResponse.DescribeConfigsResourceResult


class Source(IntEnum):
    """Where a value comes from, with the numbers of the protocol."""

    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class Shown(NamedTuple):
    """What the request wants to see beyond the values."""

    synonyms: bool
    documentation: bool


_TYPES: Final = {
    Type.BOOLEAN: 1,
    Type.STRING: 2,
    Type.INT: 3,
    Type.SHORT: 4,
    Type.LONG: 5,
    Type.DOUBLE: 6,
    Type.LIST: 7,
    Type.CLASS: 8,
    Type.PASSWORD: 9,
}

_ALSO_NAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.hours",),
    "log.roll.ms": ("log.roll.hours",),
    "log.roll.jitter.ms": ("log.roll.jitter.hours",),
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms",),
}
"""Weaker names of the same broker setting."""

OF_THE_AUTHORIZER: Final = frozenset(row.name for row in broker.ACCESS)
"""Kafka's table does not have these: they are listed if they are given, without their values, as what a plug-in has."""


def described_row(name: str) -> Setting | None:
    """The row of a broker setting, if Kafka has one."""
    return None if name in OF_THE_AUTHORIZER else broker_row(name)


def java_text(value: Value) -> str | None:
    """A value as Java writes it, which differs from Python in floating point; None for what is null or secret."""
    if value is None:
        return None
    if isinstance(value, float):
        mantissa, _, exponent = repr(value).partition("e")
        if not exponent:
            return mantissa
        return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"
    return value_text(value)


class BrokerSources:
    """Finds what gives a broker setting its value."""

    def __init__(self, node: NodeSettings, configs: ConfigsImage) -> None:
        self.own = configs.of_broker(node.node_id)
        self.cluster = configs.of_cluster()
        self._file = dict(node.static.given)
        self._file.setdefault("broker.id", node.node_id)

    @property
    def file(self) -> Mapping[str, Value]:
        return self._file

    def synonyms(self, name: str) -> list[Synonym]:
        row = described_row(name)
        names = (name, *_ALSO_NAMED.get(name, ()))
        if row is not None and is_for_one_listener(name):
            names = (name, row.name)
        found = [Synonym(key, self.own[key], Source.BROKER) for key in names if key in self.own]
        found += [Synonym(key, self.cluster[key], Source.CLUSTER) for key in names if key in self.cluster]
        found += [Synonym(key, java_text(self._file[key]), Source.FILE) for key in names if key in self._file]
        found += _defaults(names)
        if row is None or row.type is Type.PASSWORD:
            found = [synonym._replace(value=None) for synonym in found]
        first = next((place for place, synonym in enumerate(found) if synonym.name == name), len(found))
        return found[first:]


def _defaults(names: Iterable[str]) -> list[Synonym]:
    table = settings(Scope.BROKER)
    rows = [table[name] for name in names if name in table and name not in OF_THE_AUTHORIZER]
    return [
        Synonym(row.name, java_text(row.default), Source.DEFAULT)
        for row in rows
        if row.default is not None and row.default is not REQUIRED
    ]


def entry(
    name: str,
    row: Setting | None,
    value: Value,
    synonyms: list[Synonym],
    shown: Shown,
    *,
    read_only: bool = False,
) -> Entry:
    """A setting that no row describes may be a secret of a plug-in, and is treated as one."""
    is_secret = row is None or row.type is Type.PASSWORD
    return Entry(
        name=name,
        value=None if is_secret else java_text(value),
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else Source.DEFAULT,
        is_sensitive=is_secret,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(
                name=synonym.name, value=synonym.value, source=synonym.source
            )
            for synonym in (synonyms if shown.synonyms else ())
        ],
        config_type=_TYPES[row.type] if row is not None else 0,
        documentation=row.doc if row is not None and shown.documentation else None,
    )


def is_read_only(name: str) -> bool:
    """Kafka calls settings of one listener read-only too, although it takes new values for them."""
    row = settings(Scope.BROKER).get(name)
    return row is None or row.dynamic is Dynamic.READ_ONLY
