"""From a topic's overrides and its broker's settings to what the hot paths read."""

import pytest

from ottla.broker.partitions.topic_settings import SettingsOfTopics, topic_settings
from ottla.log.log_config import LogConfig
from ottla.records.header import Compression, TimestampType
from ottla.records.validate import ProduceRules
from tests.unit.broker.brokers import broker_settings


def test_the_defaults_are_kafkas():
    settings = topic_settings({})
    assert settings.log == LogConfig()
    assert settings.rules == ProduceRules()
    assert settings.min_insync_replicas == 1
    assert settings.flush_messages == (1 << 63) - 1
    assert not settings.stamps_records


def test_a_topic_has_its_own_over_its_brokers():
    broker = broker_settings(message_max_bytes="500", log_retention_hours="1", min_insync_replicas="2")
    settings = topic_settings({"max.message.bytes": "100"}, broker)
    assert settings.rules.max_message_bytes == 100
    assert settings.log.retention_ms == 3_600_000
    assert settings.min_insync_replicas == 2


@pytest.mark.parametrize(
    ("overrides", "codec", "level"),
    [
        ({"compression.type": "producer"}, None, None),
        ({"compression.type": "uncompressed"}, Compression.NONE, None),
        ({"compression.type": "snappy"}, Compression.SNAPPY, None),
        ({"compression.type": "gzip"}, Compression.GZIP, None),
        ({"compression.type": "gzip", "compression.gzip.level": "9"}, Compression.GZIP, 9),
        ({"compression.type": "zstd", "compression.zstd.level": "-5"}, Compression.ZSTD, -5),
        ({"compression.type": "lz4"}, Compression.LZ4, 9),
    ],
)
def test_the_codec_and_its_level(overrides, codec, level):
    rules = topic_settings(overrides).rules
    assert (rules.compression, rules.compression_level) == (codec, level)


def test_what_records_have_to_be_like():
    settings = topic_settings(
        {
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "5",
            "message.timestamp.after.max.ms": "6",
            "cleanup.policy": "compact,delete",
        }
    )
    assert settings.rules == ProduceRules(
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        timestamp_before_max_ms=5,
        timestamp_after_max_ms=6,
        compacted=True,
    )
    assert settings.stamps_records


def test_topics_with_the_same_overrides_share_one_object():
    topics = SettingsOfTopics(broker_settings())
    assert topics.of({}) is topics.of({})
    one = topics.of({"retention.ms": "1", "segment.ms": "2"})
    assert one is topics.of({"segment.ms": "2", "retention.ms": "1"})


def test_new_settings_of_the_broker_are_seen():
    topics = SettingsOfTopics(broker_settings())
    before = topics.of({})
    topics.on_broker_settings(broker_settings(log_retention_ms="7"))
    assert before.log.retention_ms != 7
    assert topics.of({}).log.retention_ms == 7
