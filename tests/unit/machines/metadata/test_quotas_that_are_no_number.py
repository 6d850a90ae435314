"""A limit that is no number, which Apache Kafka takes and holds nobody to: refused here, and no limit in a log."""

from math import isnan, nan

import pytest

from ottla.machines.metadata.decisions.alter_quotas import CLIENT_KEYS, IP_KEYS
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.quotas_image import quota_record
from ottla.machines.quota.limits import find_limit
from ottla.wire.errors import ErrorCode
from tests.unit.machines.metadata.admin_scenes import quotas
from tests.unit.machines.metadata.controllers import one_node


@pytest.mark.parametrize("key", [*CLIENT_KEYS, *IP_KEYS])
def test_it_is_refused(key: str) -> None:
    entity = ("ip", "127.0.0.1") if key in IP_KEYS else ("user", "ann")
    decision = one_node().controller.decide(quotas(([entity], (key, nan))), 1, 0)
    (answer,) = decision.reply.entries
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0"
    )  # fmt: skip
    assert decision.records == []


def test_one_in_the_log_of_apache_kafka_is_no_limit() -> None:
    """Held to it, a client would have to wait for ever, and a fetch of so many bytes be none."""
    image, entity = MetadataImage(), frozenset({("user", "ann")})
    image.replay(quota_record(entity, "consumer_byte_rate", 100.0))
    record = quota_record(entity, "consumer_byte_rate", nan)
    assert isnan(record.value)
    image.replay(record)
    assert find_limit(image.quotas.by_entity, "consumer_byte_rate", "ann", "app") is None
