"""How programs use the clients, for a type checker: `test_typed_clients.py` has it read."""

from typing import assert_type

from ottla import Admin, aio
from ottla.admin import CreatedTopic, NewTopic, OffsetSpec, Results, TopicListing
from ottla.base.ids import TopicPartition
from ottla.client.admin.records import ListedOffset
from ottla.errors import KafkaError


def blocking() -> None:
    with Admin(bootstrap_servers="localhost:9092", request_timeout_ms=5000) as admin:
        created = admin.create_topics([NewTopic("clicks", partitions=3), "orders"], validate_only=True)
        assert_type(created, Results[str, CreatedTopic])
        assert_type(created.errors, dict[str, KafkaError])
        assert_type(admin.list_topics(), list[TopicListing])
        zero = TopicPartition("clicks", 0)
        assert_type(admin.list_offsets({zero: OffsetSpec.LATEST})[zero], ListedOffset)


async def with_asyncio() -> None:
    async with aio.Admin({"bootstrap.servers": "localhost:9092"}) as admin:
        assert_type(await admin.create_topics(["clicks"], timeout=5.0), Results[str, CreatedTopic])
        assert_type(await admin.list_topics(), list[TopicListing])


def mistakes() -> None:
    admin = Admin(bootstrap_server="localhost:9092")  # type: ignore[call-arg]
    admin.create_topics([5])  # type: ignore[list-item]
    admin.list_topics(internal=True)  # type: ignore[call-arg]
