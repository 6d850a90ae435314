"""Members of groups that outlive their node: two of a classic group, two of a consumer group (KIP-848).

They are raw: a member of a client library would rejoin when its connection breaks. These go on at the next node as if
nothing had happened, or are never heard of again.
"""

from __future__ import annotations

import uuid

from ottla.base.ids import Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeGroupsRequest
from tests.interop.group_scenes import Beat, Talk, commit, heartbeat, join, new_member, subscription, sync

SILENCE_S = 15
"""How long whoever is not heard of again is waited for."""


class ClassicMembers:
    """Ann leads, and has the first partition; Bob has the second, and falls silent when the node changes."""

    def __init__(self, talk: Talk, group_id: str, topic: str) -> None:
        self.group_id = group_id
        self.protocols = {"range": subscription(topic)}
        self.ann = new_member(talk, "ann", group_id, protocols=self.protocols)
        talk.receive("ann")
        talk.ask(sync(group_id, self.ann, 1, (self.ann, b"all")), 5, "ann")
        self.bob = new_member(talk, "bob", group_id, protocols=self.protocols, session_timeout_ms=SILENCE_S * 1000)
        talk.send(join(group_id, self.ann, protocols=self.protocols), 9, "ann")
        assert {talk.receive(name).generation_id for name in ("ann", "bob")} == {2}
        talk.send(sync(group_id, self.ann, 2, (self.ann, b"first"), (self.bob, b"second")), 5, "ann")
        assert talk.receive("ann").assignment == b"first"
        assert talk.ask(sync(group_id, self.bob, 2), 5, "bob").assignment == b"second"
        commit_both(talk, "ann", group_id, topic, self.ann, 2)

    def bob_beats(self, talk: Talk) -> None:
        assert talk.ask(heartbeat(self.group_id, self.bob, 2), 4, "bob").error_code == ErrorCode.NONE

    def are_still_there(self, talk: Talk) -> None:
        (group,) = talk.ask(DescribeGroupsRequest(groups=[self.group_id]), 5).groups
        assert group.group_state == "Stable"
        assert {member.member_id: member.member_assignment for member in group.members} == {
            self.ann: b"first",
            self.bob: b"second",
        }
        assert talk.ask(sync(self.group_id, self.ann, 2), 5, "ann").assignment == b"first"
        assert self.beat(talk) is ErrorCode.NONE

    def beat(self, talk: Talk) -> ErrorCode:
        """REBALANCE_IN_PROGRESS as soon as Bob is missed."""
        return ErrorCode(talk.ask(heartbeat(self.group_id, self.ann, 2), 4, "ann").error_code)

    def rejoin(self, talk: Talk) -> None:
        joined = talk.ask(join(self.group_id, self.ann, protocols=self.protocols), 9, "ann")
        assert (joined.generation_id, [member.member_id for member in joined.members]) == (3, [self.ann])
        assert talk.ask(sync(self.group_id, self.ann, 3, (self.ann, b"both")), 5, "ann").assignment == b"both"


class ConsumerMember:
    """One member of a consumer group: what it owns, and the epoch that it knows."""

    def __init__(self, name: str, group_id: str, topic: str) -> None:
        self.name = name
        self.member_id = str(uuid.uuid4())
        self.group_id = group_id
        self.topic = topic
        self.epoch = 0
        self.owned: dict[Uuid, list[int]] = {}

    @property
    def partitions(self) -> list[int]:
        return sorted(index for indexes in self.owned.values() for index in indexes)

    def beat(self, talk: Talk) -> None:
        """Tells all that there is to tell, and takes what it is assigned at once."""
        request = Beat(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self.topic],
            topic_partitions=[
                Beat.TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in self.owned.items()
            ],
        )
        reply = talk.ask(request, 1, self.name)
        assert reply.error_code == ErrorCode.NONE, reply
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.owned = {topic.topic_id: topic.partitions for topic in reply.assignment.topic_partitions}

    def commit(self, talk: Talk) -> None:
        commit_both(talk, self.name, self.group_id, self.topic, self.member_id, self.epoch)


def commit_both(talk: Talk, name: str, group_id: str, topic: str, member_id: str, generation: int) -> None:
    """Offset 1 in both partitions of a topic."""
    for index in (0, 1):
        who = {"member_id": member_id, "generation_id_or_member_epoch": generation}
        (answered,) = talk.ask(commit(group_id, (topic, index, 1), **who), 9, name).topics
        assert answered.partitions[0].error_code == ErrorCode.NONE, answered
