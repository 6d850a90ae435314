"""What consumers of a classic group say to each other inside JoinGroup and SyncGroup: to the coordinator it is bytes.

A version number, and a message of that version. Versions only add, so a newer one than we know is read as the newest
that we do; and the newest is written always, as Java does.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, TypeVar

from ottla.base.errors import RemoteProtocolError
from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import MemberSubscription
from ottla.wire.codec import decode_from
from ottla.wire.faults import DecodeError
from ottla.wire.message import Message
from ottla.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.record_values import encode_versioned

PROTOCOL_TYPE: Final = "consumer"
NEWEST_VERSION: Final = 3
_NO_GENERATION: Final = -1
_VERSION: Final = Struct(">h")

MessageT = TypeVar("MessageT", bound=Message)


class MalformedMemberData(RemoteProtocolError):
    """Another member of the group has sent what is not a consumer's subscription or assignment."""


def write_subscription(subscription: MemberSubscription, version: int = NEWEST_VERSION) -> bytes:
    generation = subscription.generation
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(subscription.owned_partitions).items()
        ],
        generation_id=_NO_GENERATION if generation is None else generation,
        rack_id=subscription.rack or None,
    )
    return encode_versioned(message, version)


def read_subscription(data: bytes, group_instance_id: str | None = None) -> MemberSubscription:
    message = _read(ConsumerProtocolSubscription, data)
    return MemberSubscription(
        topics=tuple(message.topics),
        user_data=None if message.user_data is None else bytes(message.user_data),
        owned_partitions=tuple(
            TopicPartition(owned.topic, partition)
            for owned in message.owned_partitions
            for partition in owned.partitions
        ),
        generation=message.generation_id if message.generation_id >= 0 else None,
        rack=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def write_assignment(partitions: Iterable[TopicPartition], version: int = NEWEST_VERSION) -> bytes:
    assigned = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in _by_topic(partitions).items()
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=None), version)


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """User data is passed over: Kafka's assignors send none."""
    return _flat(_read(ConsumerProtocolAssignment, data).assigned_partitions)


def _flat(
    topics: Iterable[ConsumerProtocolAssignment.TopicPartition | ConsumerProtocolSubscription.TopicPartition],
) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(of_topic.topic, number) for of_topic in topics for number in of_topic.partitions)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        numbers.setdefault(topic, []).append(number)
    return numbers


def _read(message: type[MessageT], data: bytes) -> MessageT:
    if len(data) < _VERSION.size or data[0] & 0x80:
        raise MalformedMemberData("it does not begin with a version")
    version = min(int(_VERSION.unpack_from(data)[0]), NEWEST_VERSION)
    try:
        return decode_from(message, data, _VERSION.size, version)[0]
    except DecodeError as problem:
        raise MalformedMemberData(str(problem)) from problem
