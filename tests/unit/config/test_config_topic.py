"""A topic's settings come from the topic, else from its broker under another name, else from the default."""

import pytest

from ottla.config.parse import ConfigError, Values, parse
from ottla.config.scopes import Scope, settings
from ottla.config.topic import Source, resolve_topic, sources
from ottla.log.log_config import LogConfig

NODE = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}


def broker(**properties: str) -> Values:
    return parse(Scope.BROKER, NODE | {key.replace("_", "."): text for key, text in properties.items()}).values


def test_a_topic_without_settings_has_the_defaults() -> None:
    resolved = resolve_topic({})
    assert dict(resolved) == {row.name: row.default for row in settings(Scope.TOPIC).values()}


def test_the_logs_own_defaults_are_the_same() -> None:
    assert LogConfig.of_settings(resolve_topic({})) == LogConfig()


def test_a_topics_own_setting_comes_before_its_brokers() -> None:
    on = broker(log_segment_bytes="2097152")
    assert resolve_topic({}, on).integer("segment.bytes") == 2097152
    assert resolve_topic({"segment.bytes": "1048576"}, on).integer("segment.bytes") == 1048576


def test_retention_is_asked_for_in_milliseconds_then_minutes_then_hours() -> None:
    assert resolve_topic({}, broker(log_retention_hours="2")).integer("retention.ms") == 7_200_000
    both = broker(log_retention_hours="2", log_retention_minutes="3")
    assert resolve_topic({}, both).integer("retention.ms") == 180_000
    all_three = broker(log_retention_hours="2", log_retention_minutes="3", log_retention_ms="4")
    assert resolve_topic({}, all_three).integer("retention.ms") == 4


@pytest.mark.parametrize("unit", ["ms", "minutes", "hours"])
def test_a_brokers_negative_retention_time_is_never(unit: str) -> None:
    assert resolve_topic({}, broker(**{f"log_retention_{unit}": "-5"})).integer("retention.ms") == -1


def test_flush_time_falls_back_to_the_schedulers() -> None:
    assert resolve_topic({}, broker(log_flush_scheduler_interval_ms="9")).integer("flush.ms") == 9


def test_every_source_is_told_in_the_order_in_which_it_counts() -> None:
    row = settings(Scope.TOPIC)["segment.ms"]
    topic = parse(Scope.TOPIC, {"segment.ms": "5"}).values
    assert sources(row, topic, broker(log_roll_ms="6", log_roll_hours="1")) == [
        Source(5, Scope.TOPIC, "segment.ms"),
        Source(6, Scope.BROKER, "log.roll.ms"),
        Source(3_600_000, Scope.BROKER, "log.roll.hours"),
        Source(604_800_000, None, "log.roll.hours"),
    ]


def test_an_unknown_topic_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"retentoin\.ms=5: it must be the name of a topic setting"):
        resolve_topic({"retentoin.ms": "5"})


def test_the_lags_of_compaction_must_leave_room() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms=9: it must be at most max\.compaction\.lag\.ms"):
        resolve_topic({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"})
