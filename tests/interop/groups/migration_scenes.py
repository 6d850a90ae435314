"""Members of both protocols in one group, step by step; every reply is noted (see `group_scenes`).

Wherever the order of members would matter there is one classic member: Kafka has them in hash maps.
"""

from __future__ import annotations

from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from ottla.wire.record_values import encode_versioned
from tests.interop.group_scenes import (
    Beat,
    Scene,
    Talk,
    beat,
    commit,
    fetch,
    heartbeat,
    join,
    leave,
    new_member,
    sync,
)

JOINING: dict[str, Any] = {
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}


def orders_id(talk: Talk) -> Uuid:
    return next(id for id, name in talk.stand_ins.topic_ids.items() if name == "orders")


def reads(*owned: int, version: int = 1, **fields: Any) -> dict[str, bytes]:
    """The protocols of a consumer of `orders` that says what it has."""
    has = [ConsumerProtocolSubscription.TopicPartition(topic="orders", partitions=owned)] if owned else []
    said = ConsumerProtocolSubscription(topics=["orders"], user_data=None, owned_partitions=has, **fields)
    return {"range": encode_versioned(said, version)}


def given(*partitions: int, user_data: bytes | None = None) -> bytes:
    of_topic = ConsumerProtocolAssignment.TopicPartition(topic="orders", partitions=partitions)
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=[of_topic], user_data=user_data), 1)


def look(talk: Talk, group: str) -> None:
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(ListGroupsRequest(), 5)


def settled_classic(talk: Talk, group: str, assignment: bytes, **fields: Any) -> str:
    """A stable group of one, ann, who has what she gave herself."""
    ann = new_member(talk, "ann", group, **fields)
    talk.receive("ann")
    talk.ask(sync(group, ann, 1, (ann, assignment)), 5, "ann")
    return ann


def there_and_back(talk: Talk) -> None:
    group = "there and back"
    ann = settled_classic(talk, group, given(0, 1), protocols=reads())
    talk.ask(beat(group, "bob", member_epoch=1), 1)
    talk.ask(beat(group, "bob", **JOINING), 1)
    look(talk, group)
    # Ann is told to join again, and gives up a partition.
    talk.ask(heartbeat(group, ann, 1), 4, "ann")
    talk.ask(heartbeat(group, ann, 2), 4, "ann")
    talk.ask(sync(group, ann, 1), 5, "ann")
    for version, generation in ((8, 1), (9, 1), (9, 0), (9, 2)):
        talk.ask(commit(group, ("orders", 0, 5), member_id=ann, generation_id_or_member_epoch=generation), version)
    talk.ask(join(group, ann, protocols=reads(0, 1)), 9, "ann")
    look(talk, group)
    talk.ask(heartbeat(group, ann, 1), 4, "ann")
    talk.ask(sync(group, ann, 1), 5, "ann")
    talk.ask(sync(group, ann, 1), 3, "ann")
    talk.ask(sync(group, ann, 1, protocol_name="sticky"), 5, "ann")
    talk.ask(beat(group, "bob", member_epoch=2), 1)
    talk.ask(join(group, ann, protocols=reads(0)), 9, "ann")
    talk.ask(sync(group, ann, 2), 5, "ann")
    talk.ask(heartbeat(group, ann, 2), 4, "ann")
    talk.ask(beat(group, "bob", member_epoch=2, topic_partitions=[]), 1)
    look(talk, group)
    for generation in (0, 1, 2, 3):
        talk.ask(commit(group, ("orders", 0, 6), member_id=ann, generation_id_or_member_epoch=generation), 9)
        talk.ask(commit(group, ("orders", 1, 6), member_id=ann, generation_id_or_member_epoch=generation), 9)
    for epoch in (1, 2):
        asked = fetch(group, orders=(0,))
        asked.groups[0].member_id, asked.groups[0].member_epoch = ann, epoch
        talk.ask(asked, 9)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    # The last consumer leaves.
    talk.ask(beat(group, "bob", member_epoch=-1), 1)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(ListGroupsRequest(), 5)
    talk.ask(heartbeat(group, ann, 2), 4, "ann")
    talk.ask(join(group, ann, protocols=reads(0)), 9, "ann")
    talk.ask(sync(group, ann, 3, (ann, given(0, 1))), 5, "ann")
    talk.ask(beat(group, "bob", member_epoch=2), 1)
    # And there again, while somebody else joins the classic group.
    cat = new_member(talk, "cat", group, protocols=reads())
    while talk.line("ann2").send(heartbeat(group, ann, 3), 4) or not talk.line("ann2").receive().error_code:
        pass
    # By range: Kafka's uniform assignor goes by the hash of ids, which are random, to say who is left with nothing.
    talk.ask(beat(group, "bob", **JOINING, server_assignor="range"), 1)
    talk.receive("cat")
    talk.ask(join(group, cat, protocols=reads(version=3, rack_id="r")), 9, "cat")
    talk.ask(join(group, ann, protocols=reads()), 9, "ann")
    talk.ask(sync(group, ann, 4), 5, "ann")
    talk.ask(leave(group, (ann, None), ("nobody", None)), 5)
    talk.ask(leave(group, (cat, None), ("bob", None)), 5)
    look(talk, group)
    talk.ask(beat(group, "bob", **JOINING, server_assignor="range"), 1)
    talk.ask(beat(group, "bob", member_epoch=-1), 1)


def joining_a_consumer_group(talk: Talk) -> None:
    group = "consumers first"
    orders = orders_id(talk)
    talk.ask(beat(group, "bob", **JOINING), 1)
    for version in (3, 4, 9):
        talk.ask(join(group, protocol_type="connect"), version)
        talk.ask(join(group, protocols={}), version)
    talk.ask(join(group, "any id", protocols={"range": b"\0"}), 9)
    talk.ask(join(group, "any id", protocols=reads(), group_instance_id="a"), 9)
    ann = talk.ask(join(group, protocols=reads()), 9, "ann").member_id
    talk.ask(join(group, ann, protocols=reads()), 9, "ann")
    talk.ask(join(group, "ann's friend", protocols={"sticky": b""}), 9)
    talk.ask(sync(group, ann, 3), 5, "ann")
    talk.ask(heartbeat(group, ann, 3), 4, "ann")
    look(talk, group)
    has = [Beat.TopicPartitions(topic_id=orders, partitions=(0, 1))]
    talk.ask(beat(group, "bob", member_epoch=2, topic_partitions=has), 1)
    talk.ask(heartbeat(group, ann, 3), 4, "ann")
    described = talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
    bob = next(member for member in described.members if member.member_id == "bob")
    keeps = [target.partitions for target in bob.target_assignment.topic_partitions]
    has = [Beat.TopicPartitions(topic_id=orders, partitions=keeps[0])]
    talk.ask(beat(group, "bob", member_epoch=2, topic_partitions=has), 1)
    talk.ask(heartbeat(group, ann, 3), 4, "ann")
    talk.ask(sync(group, ann, 3), 5, "ann")
    talk.ask(join(group, ann, protocols=reads()), 9, "ann")
    talk.ask(sync(group, ann, 3), 5, "ann")
    talk.ask(heartbeat(group, ann, 3), 4, "ann")
    # What only the other kind of member may ask.
    talk.ask(heartbeat(group, "bob", 3), 4)
    talk.ask(sync(group, "bob", 3), 5)
    talk.ask(heartbeat(group, "nobody", 3), 4)
    talk.ask(heartbeat(group, ann, 3, group_instance_id="a"), 4)
    talk.ask(sync(group, ann, 3, protocol_type="connect"), 5)
    talk.ask(leave(group, ("", "a"), (ann, "a")), 5)
    # Ann comes back with the consumer protocol, under her id, and bob with the classic one.
    talk.ask(beat(group, ann, **JOINING), 1)
    talk.ask(join(group, "bob", protocols=reads()), 9, "bob")
    look(talk, group)
    talk.ask(leave(group, ("bob", None), (ann, None)), 5)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)


def static_members_change_sides(talk: Talk) -> None:
    group = "static sides"
    ann = talk.ask(join(group, group_instance_id="a", protocols=reads()), 9, "ann").member_id
    talk.ask(sync(group, ann, 1, (ann, given(0, 1)), group_instance_id="a"), 5, "ann")
    talk.ask(beat(group, "bob", **JOINING, instance_id="a"), 1)
    look(talk, group)
    talk.ask(heartbeat(group, ann, 1, group_instance_id="a"), 4, "ann")
    talk.ask(beat(group, "twin", **JOINING, instance_id="a"), 1)
    # The last consumer's place is taken by a classic member: the group is classic again, and nothing moves.
    back = talk.ask(join(group, group_instance_id="a", protocols=reads(0, 1)), 9, "ann")
    look(talk, group)
    talk.ask(sync(group, back.member_id, back.generation_id, group_instance_id="a"), 5, "ann")
    talk.ask(heartbeat(group, back.member_id, back.generation_id, group_instance_id="a"), 4, "ann")
    talk.ask(beat(group, "bob", member_epoch=2, instance_id="a"), 1)
    # The same with another subscription: everybody is to gather.
    talk.ask(beat(group, "bob", **JOINING, instance_id="a"), 1)
    of_both = encode_versioned(ConsumerProtocolSubscription(topics=["orders", "payments"], user_data=None), 1)
    again = talk.ask(join(group, group_instance_id="a", protocols={"range": of_both}), 9, "ann")
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(heartbeat(group, again.member_id, again.generation_id, group_instance_id="a"), 4, "ann")
    # Two of them, one on each side.
    talk.ask(join(group, again.member_id, group_instance_id="a", protocols=reads()), 9, "ann")
    talk.ask(beat(group, "bob", **JOINING, instance_id="b"), 1)
    talk.ask(beat(group, "bob", member_epoch=-2, instance_id="b"), 1)
    look(talk, group)
    talk.ask(leave(group, (again.member_id, "b"), ("", "b")), 5)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(leave(group, ("", "a")), 5)


def groups_that_stay_what_they_are(talk: Talk) -> None:
    group = "not of consumers"
    ann = settled_classic(talk, "malformed", given(0, 1)[:-6], protocols=reads())
    talk.ask(beat("malformed", "bob", **JOINING), 1)
    talk.ask(heartbeat("malformed", ann, 1), 4, "ann")
    custom = settled_classic(talk, "custom", given(0, 1, user_data=b"mine"), protocols=reads())
    talk.ask(beat("custom", "bob", **JOINING), 1)
    member_id = talk.ask(join(group, protocol_type="connect"), 9).member_id
    talk.ask(join(group, member_id, protocol_type="connect"), 9)
    talk.ask(beat(group, "bob", **JOINING), 1)
    talk.ask(beat("malformed", "bob", **JOINING, server_assignor="mine"), 1)
    for group_id, left in (("malformed", ann), ("custom", custom), (group, member_id)):
        talk.ask(leave(group_id, (left, None)), 5)
        talk.ask(beat(group_id, "bob", **JOINING), 1)
        talk.ask(beat(group_id, "bob", member_epoch=-1), 1)


def whatever_the_policy(talk: Talk) -> None:
    """The same steps on nodes of each policy, which answer differently."""
    group = "policy"
    ann = settled_classic(talk, group, given(0, 1), protocols=reads())
    upgraded = talk.ask(beat(group, "bob", **JOINING), 1).error_code == 0
    look(talk, group)
    talk.ask(heartbeat(group, ann, 1), 4, "ann")
    if not upgraded:
        talk.ask(leave(group, (ann, None)), 5)
        talk.ask(beat(group, "bob", **JOINING), 1)
    look(talk, group)
    old = talk.ask(join(group, protocols=reads()), 3, "old").member_id
    talk.ask(join(group, "cat", protocols=reads()), 9, "cat")
    talk.ask(leave(group, (ann, None), (old, None)), 5)
    talk.ask(beat(group, "bob", member_epoch=-1), 1)
    talk.ask(ListGroupsRequest(), 5)


SCENES: dict[str, Scene] = {
    scene.__name__.replace("_", " "): scene
    for scene in (
        there_and_back,
        joining_a_consumer_group,
        static_members_change_sides,
        groups_that_stay_what_they_are,
        whatever_the_policy,
    )
}
