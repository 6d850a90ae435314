"""One row of the settings tables. Parsing, DescribeConfigs, `--help` and the reference page all come from rows.

The tables in `ottla.config.tables` write rows with the short constructors below, which read like a line of a page:

    Int("num.partitions", 1, at_least(1), MEDIUM,
        "Partitions of a topic that is created without a number of its own."),
"""

from enum import Enum
from typing import Final, NamedTuple

from ottla.config.bounds import Bound
from ottla.config.values import Type, Value, parse_value


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Dynamic(Enum):
    """Whether a running node takes a new value (KIP-226), and for how much of the cluster it can be given."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Required(Enum):
    """Stands in the default's place where there is none: the key must be given."""

    REQUIRED = "required"


class Synonym(NamedTuple):
    """A broker setting that gives a topic setting its default, and how many of the topic's units one of it is."""

    name: str
    times: int = 1


class Setting(NamedTuple):
    name: str
    type: Type
    default: Value | Required
    bound: Bound | None
    importance: Importance
    doc: str
    dynamic: Dynamic = Dynamic.READ_ONLY
    acted_on: bool = False
    """Whether this version does what the setting says. Others are accepted, and warned about by name."""
    synonyms: tuple[Synonym, ...] = ()
    """For a topic setting: the broker settings that are asked for a default, first set first."""

    def parse(self, text: str) -> Value:
        """The value of `text`. Raises `ValueError` whose message completes "it must be …"."""
        value = parse_value(self.type, text)
        self.check(value)
        return value

    def check(self, value: Value) -> None:
        if self.bound is not None and not self.bound.allows(value):
            raise ValueError(str(self.bound))


HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW

PER_BROKER: Final = Dynamic.PER_BROKER
CLUSTER_WIDE: Final = Dynamic.CLUSTER_WIDE
READ_ONLY: Final = Dynamic.READ_ONLY

REQUIRED: Final = Required.REQUIRED
ANY: Final = None
"""No bound: whatever the type allows."""

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1


class _Rows:
    """Makes the constructors: one type each, and the columns in the order in which a person asks for them."""

    def __init__(self, type: Type) -> None:
        self.type = type

    def __call__(
        self,
        name: str,
        default: Value | Required,
        bound: Bound | None,
        importance: Importance,
        doc: str,
        dynamic: Dynamic = READ_ONLY,
        *,
        acted_on: bool = False,
        synonyms: tuple[Synonym, ...] = (),
    ) -> Setting:
        return Setting(name, self.type, default, bound, importance, doc, dynamic, acted_on, synonyms)


Short: Final = _Rows(Type.SHORT)
Int: Final = _Rows(Type.INT)
Long: Final = _Rows(Type.LONG)
Double: Final = _Rows(Type.DOUBLE)
Text: Final = _Rows(Type.STRING)
List: Final = _Rows(Type.LIST)
Class: Final = _Rows(Type.CLASS)
Flag: Final = _Rows(Type.BOOLEAN)


def Secret(  # noqa: N802 - a column of the tables, like its siblings
    name: str, importance: Importance, doc: str, dynamic: Dynamic = READ_ONLY, *, acted_on: bool = False
) -> Setting:
    """A password: no default, no bound, never shown."""
    return Setting(name, Type.PASSWORD, None, ANY, importance, doc, dynamic, acted_on)
