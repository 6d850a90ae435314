"""A topic's settings as they count on this node: its own, else those of brokers, each by the names it has there."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import Type, Value, value_text

# Sources of a value, as DescribeConfigs and CreateTopics number them.
DYNAMIC_TOPIC = 1
DYNAMIC_BROKER = 2
DYNAMIC_CLUSTER = 3
STATIC_BROKER = 4
DEFAULT = 5


class EffectiveSetting(NamedTuple):
    name: str
    text: str | None
    """As a client reads it; None for a secret."""
    source: int


def effective_settings(
    topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str], static: Values
) -> Iterator[EffectiveSetting]:
    """Every topic setting by name, for a topic with settings `topic`, where brokers were given `broker`, all of them
    `cluster`, and their files say `static`.
    """
    for name, row in sorted(settings(Scope.TOPIC).items()):
        text, source = _effective(row, topic, broker, cluster, static)
        yield EffectiveSetting(name, None if row.type is Type.PASSWORD else text, source)


def effective_value(
    name: str, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str], static: Values
) -> Value:
    row = settings(Scope.TOPIC)[name]
    return row.parse(_effective(row, topic, broker, cluster, static)[0])


def _effective(
    row: Setting, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str], static: Values
) -> tuple[str, int]:
    if row.name in topic:
        return topic[row.name], DYNAMIC_TOPIC
    for given, source in ((broker, DYNAMIC_BROKER), (cluster, DYNAMIC_CLUSTER)):
        for name, times in row.synonyms:
            if name in given:
                return _times(given[name], times), source
    for name, times in row.synonyms:
        if name in static.given:
            return _times(value_text(static.given[name]), times), STATIC_BROKER
    assert row.default is not REQUIRED, "every topic setting has a default"
    return value_text(row.default), DEFAULT


def _times(text: str, times: int) -> str:
    """Hours and minutes of a broker's setting in milliseconds of the topic's."""
    return text if times == 1 else str(int(text) * times)
