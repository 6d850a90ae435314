"""Members of groups that behave: one that speaks the consumer protocol, and one that speaks the classic protocol."""

from collections.abc import Iterable
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ottla.wire.record_values import decode_versioned, encode_versioned
from tests.unit.machines.group.group_bench import Call, Groups

HEARTBEAT_MS = 5000
Owned = ConsumerGroupHeartbeatRequest.TopicPartitions
Place = tuple[str, int]

_EMBEDDED_VERSION = 3
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class Member:
    """A consumer: it takes what it is given, and gives up what it is told to with the next heartbeat."""

    def __init__(self, groups: Groups, member_id: str, *topics: str, **details: Any) -> None:
        self._groups = groups
        self.member_id = member_id
        self.epoch = 0
        self.has: dict[Uuid, set[int]] = {}
        self._details = {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": 60_000, **details}

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """By the names of their topics."""
        return {(id.rstrip(b".").decode(), index) for id, indexes in self.has.items() for index in indexes}

    def beat(self, **fields: Any) -> Any:
        """Says what has changed; in the first heartbeat, everything."""
        said = {"member_id": self.member_id, "member_epoch": self.epoch, **fields}
        if self.epoch == 0:
            said = {**self._details, "topic_partitions": [], **said}
        if self._details.get("instance_id"):
            said["instance_id"] = self._details["instance_id"]
        reply = self._groups.beat(**said)
        if not isinstance(reply, ErrorCode):
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.has = {given.topic_id: set(given.partitions) for given in reply.assignment.topic_partitions}
        return reply

    def follow(self) -> Any:
        """A heartbeat that says what it has, as one who has just given something up."""
        owned = [Owned(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in self.has.items()]
        return self.beat(topic_partitions=owned)

    def leave(self, epoch: int = -1) -> Any:
        return self._groups.beat(
            member_id=self.member_id, member_epoch=epoch, instance_id=self._details.get("instance_id")
        )


class ClassicConsumer:
    """A consumer of the classic protocol. An eager one gives up everything before it joins again, a cooperative one
    what it was not given again (KIP-429), after which it joins once more.

    With one step it does what there is to do next, and no more. `has` are its partitions, as far as it knows.
    """

    def __init__(self, groups: Groups, name: str, *topics: str, eager: bool = False, **details: Any) -> None:
        self._groups = groups
        self._name = name
        self._topics = topics
        self._is_eager = eager
        self._details = details
        self.instance_id: str | None = details.get("instance_id")
        self.has: set[Place] = set()
        self.calls: list[Call] = []
        self.reset()

    def reset(self) -> None:
        """It knows nothing any more, and begins anew."""
        self.member_id = ""
        self.generation = -1
        self.has = set()
        self._waits: Call | None = None
        self._must_join = True
        self._leads: dict[str, ConsumerProtocolSubscription] = {}

    def step(self) -> None:
        if self._waits is not None:
            self._take_in()
        elif self._must_join:
            self._join()
        else:
            self._on_error(self.heartbeat())

    def heartbeat(self) -> ErrorCode:
        return self._groups.heartbeat(self.member_id, generation=self.generation, instance_id=self.instance_id)

    def leave(self) -> list[ErrorCode]:
        left = self._groups.leave(self.member_id, instance_id=self.instance_id)
        self.reset()
        return left

    def commit(self, place: Place = ("orders", 0)) -> Any:
        return self._groups.commit({place: 1}, member_id=self.member_id, generation=self.generation)

    def _join(self) -> None:
        if self._is_eager:
            self.has = set()
        said = ConsumerProtocolSubscription(
            topics=self._topics, user_data=None, owned_partitions=_by_topic(ConsumerProtocolSubscription, self.has)
        )
        protocols = {"range": encode_versioned(said, _EMBEDDED_VERSION)}
        self._wait(self._groups.ask_join(self._name, self.member_id, protocols=protocols, **self._details))

    def _sync(self) -> None:
        self._wait(
            self._groups.sync(self.member_id, self._divided(), generation=self.generation, instance_id=self.instance_id)
        )

    def _divided(self) -> dict[str, bytes]:
        """The leader's work: each partition goes to one of those who read it, in turn, unless another still has it."""
        given: dict[str, set[Place]] = {member_id: set() for member_id in self._leads}
        owners = {place: member_id for member_id, said in self._leads.items() for place in _owned(said)}
        for topic in self._groups.image.topics.by_name.values():
            readers = [member_id for member_id, said in self._leads.items() if topic.name in said.topics]
            for index in topic.partitions if readers else ():
                place, reader = (topic.name, index), readers[index % len(readers)]
                if owners.get(place, reader) == reader:
                    given[reader].add(place)
        return {member_id: assignment(places) for member_id, places in given.items()}

    def _wait(self, call: Call) -> None:
        self.calls.append(call)
        self._waits = call
        self._take_in()

    def _take_in(self) -> None:
        call = self._waits
        if call is None or not call.is_answered:
            return
        self._waits = None
        if call.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = call.member_id
        elif call.error:
            self._on_error(call.error)
        elif hasattr(call.reply, "generation_id"):
            self.member_id, self.generation = call.member_id, call.generation
            self._must_join = False
            self._leads = {
                member.member_id: decode_versioned(ConsumerProtocolSubscription, member.metadata)
                for member in call.reply.members
            }
            self._sync()
        else:
            self._on_assigned(call.reply.assignment)

    def _on_assigned(self, data: bytes) -> None:
        given = partitions_in(data)
        self._must_join = bool(self.has - given) and not self._is_eager
        self.has = self.has & given if self._must_join else given

    def _on_error(self, error: ErrorCode) -> None:
        if error in _LOST:
            self.reset()
        elif error:
            self._must_join = True
            if error is ErrorCode.ILLEGAL_GENERATION:
                self.has = set()


def assignment(places: Iterable[Place], user_data: bytes | None = None) -> bytes:
    given = ConsumerProtocolAssignment(
        assigned_partitions=_by_topic(ConsumerProtocolAssignment, set(places)), user_data=user_data
    )
    return encode_versioned(given, _EMBEDDED_VERSION)


def partitions_in(data: bytes) -> set[Place]:
    if not data:
        return set()
    decoded = decode_versioned(ConsumerProtocolAssignment, data)
    return {(topic.topic, index) for topic in decoded.assigned_partitions for index in topic.partitions}


def _owned(said: ConsumerProtocolSubscription) -> set[Place]:
    return {(topic.topic, index) for topic in said.owned_partitions for index in topic.partitions}


def _by_topic(message: Any, places: set[Place]) -> list[Any]:
    names = sorted({name for name, _ in places})
    return [
        message.TopicPartition(topic=name, partitions=sorted(index for topic, index in places if topic == name))
        for name in names
    ]
