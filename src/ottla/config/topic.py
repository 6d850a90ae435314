"""The settings one topic lives by: its own over its broker's, over Apache Kafka's defaults.

A topic setting that the topic does not set takes its broker's value of another name (`retention.ms` from
`log.retention.ms`, else `log.retention.minutes`, else `log.retention.hours`): the synonyms of its row, first set first.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.parse import ConfigError, Problem, Values, parse
from ottla.config.scopes import Scope, settings
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import Value


def resolve_topic(overrides: Mapping[str, str], broker: Values | None = None) -> Values:
    """Every topic setting by name, for a topic with `overrides` on a broker with values `broker`.

    Raises `ConfigError` with all problems. Unlike in a file, an unknown key is one of them, as it is for CreateTopics.
    """
    table = settings(Scope.TOPIC)
    _refuse_unknown(overrides)
    topic = parse(Scope.TOPIC, overrides).values
    resolved = Values({row.name: sources(row, topic, broker)[0].value for row in table.values()}, table)
    shortest_ms, longest_ms = resolved.integer("min.compaction.lag.ms"), resolved.integer("max.compaction.lag.ms")
    if shortest_ms > longest_ms:
        bound = f"at most max.compaction.lag.ms, which is {longest_ms}"
        raise ConfigError((Problem("min.compaction.lag.ms", str(shortest_ms), bound),))
    return resolved


def _refuse_unknown(overrides: Mapping[str, str]) -> None:
    unknown = [(key, text) for key, text in overrides.items() if key not in settings(Scope.TOPIC)]
    if unknown:
        raise ConfigError(tuple(Problem(key, text, "the name of a topic setting") for key, text in unknown))


class Source(NamedTuple):
    """One place that gives a topic setting a value, in the topic's own unit."""

    value: Value
    scope: Scope | None
    """The topic itself, its broker, or None for the default of the row."""
    key: str
    """The name under which that place has it."""


def sources(row: Setting, topic: Values, broker: Values | None) -> list[Source]:
    """All that give the topic setting of `row` a value, the one that counts first; DescribeConfigs' synonyms."""
    found = [Source(topic.given[row.name], Scope.TOPIC, row.name)] if row.name in topic.given else []
    given = broker.given if broker is not None else {}
    found += [
        Source(_in_topic_units(row, value, times), Scope.BROKER, name)
        for name, times in row.synonyms
        if (value := given.get(name)) is not None
    ]
    assert row.default is not REQUIRED, "every topic setting has a default"
    # The last synonym is the one with a default: `log.retention.hours` has, `log.retention.ms` has not.
    found.append(Source(row.default, None, row.synonyms[-1].name if row.synonyms else row.name))
    return found


def _in_topic_units(row: Setting, value: Value, times: int) -> Value:
    if not isinstance(value, int):
        return value
    # A broker reads every negative retention time as "never".
    return -1 if row.name == "retention.ms" and value < 0 else value * times
