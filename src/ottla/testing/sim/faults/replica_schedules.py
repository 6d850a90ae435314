"""Schedules for replicas: what epochs of leaders and brokers, and the order of what is reported, are for.

Brokers hear of the metadata late, requests arrive late. Each schedule is what one check keeps from doing harm.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.machines.metadata.image.brokers_image import BrokerRegistration
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.testing.sim.cluster.cluster_health import broker_epoch
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.schedule import Schedule, Steps, Until
from ottla.testing.sim.workloads.topics import KEPT, partitions_of
from ottla.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)

_SOON_MS = 2_000
_LAGS_MS = 8_000
_STARTED_MS = 5_000
_ELECTED_MS = 10_000
_NOTICED_MS = 500
_REPLICAS = 3
_TOPIC = 2
"""The kind of resource that a topic is."""
_MIN_INSYNC_REPLICAS = "min.insync.replicas"


class _Cast(NamedTuple):
    """Who plays which part, in what happens to one partition."""

    name: TopicPartition
    leader: Machine
    others: list[Machine]
    """Its followers."""

    @property
    def all(self) -> list[int]:
        return [self.leader.node_id, *(one.node_id for one in self.others)]


def _cast(play: Schedule) -> _Cast | None:
    """Some partition whose replicas are all well. None where there is none."""
    image = _image(play)
    machines = {one.node_id: one for one in play.brokers}
    found: list[_Cast] = []
    for name in partitions_of(*KEPT) if image is not None else ():
        known = _known(image, name)
        if known is None or len(known.isr) < _REPLICAS or known.adding_replicas or known.removing_replicas:
            continue
        leader = machines.get(known.leader)
        others = [machines[one] for one in known.replicas if one != known.leader]
        if leader is not None and all(_replica(one, name) is not None for one in (leader, *others)):
            play.chance.shuffle(others)
            found.append(_Cast(name, leader, others))
    return play.chance.choice(found) if found and play.leader() is not None else None


def _image(play: Schedule) -> MetadataImage | None:
    """What the controller that leads knows to be committed."""
    leader = play.leader()
    return leader.metadata.image if leader is not None and leader.metadata is not None else None


def _known(image: MetadataImage | None, name: TopicPartition) -> PartitionImage | None:
    topic = image.topics.by_name.get(name.topic) if image is not None else None
    return topic.partitions.get(name.partition) if topic is not None else None


def _replica(machine: Machine, name: TopicPartition) -> Partition | None:
    broker = machine.node.broker if machine.is_serving and machine.node is not None else None
    return broker.partitions.get(name) if broker is not None else None


def _leads(machine: Machine, name: TopicPartition) -> bool:
    replica = _replica(machine, name)
    return replica is not None and replica.is_leader


def _epoch(machine: Machine, name: TopicPartition) -> int:
    replica = _replica(machine, name)
    return -1 if replica is None else replica.leader_epoch


def _watermark(machine: Machine, name: TopicPartition) -> int:
    replica = _replica(machine, name)
    return -1 if replica is None else replica.log.high_watermark


def _make_leader(play: Schedule, name: TopicPartition, replicas: list[int]) -> None:
    """The first of them is to lead."""
    leader = play.leader()
    if leader is None:
        return
    reassign, elect = AlterPartitionReassignmentsRequest, ElectLeadersRequest
    moved = reassign.ReassignablePartition(partition_index=name.partition, replicas=replicas)
    topics = [reassign.ReassignableTopic(name=name.topic, partitions=[moved])]
    client = play.ask(leader, reassign(topics=topics, timeout_ms=_SOON_MS), 0)
    if client is not None:
        partitions = [elect.TopicPartitions(topic=name.topic, partitions=[name.partition])]
        client.send(elect(election_type=0, topic_partitions=partitions, timeout_ms=_SOON_MS), 2)


def _set_level(play: Schedule, topic: str, level: int) -> None:
    leader = play.leader()
    if leader is None:
        return
    alter = IncrementalAlterConfigsRequest
    config = alter.AlterableConfig(name=_MIN_INSYNC_REPLICAS, config_operation=0, value=str(level))
    resource = alter.AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=[config])
    play.ask(leader, alter(resources=[resource]), 1)


def stale_follower(play: Schedule) -> Steps:
    """A follower does not hear that another has led, and that its leader leads again: it fetches in the old epoch.

    If that counted, what it has could be acknowledged. Then it hears of the epoch in between, whose leader still takes
    itself for it, and cuts off its log what that one does not have.
    """
    cast = _cast(play)
    if cast is None:
        return
    name, leader, (between, follower) = cast
    epoch = _epoch(leader, name)
    unheard = play.cut(play.controllers, [follower], both_ways=False)
    _make_leader(play, name, [between.node_id, leader.node_id, follower.node_id])
    yield Until("another leads", lambda: _leads(between, name) and _epoch(leader, name) > epoch, _SOON_MS)
    epoch_between = _epoch(between, name)
    play.cut(play.controllers, [between], both_ways=False)
    _make_leader(play, name, [leader.node_id, between.node_id, follower.node_id])
    yield Until("it leads again", lambda: _leads(leader, name), _SOON_MS)
    play.note(f"node {leader.node_id} leads {name} in epoch {_epoch(leader, name)}, node {follower.node_id} follows")

    def is_out() -> bool:
        known = _known(_image(play), name)
        return known is not None and between.node_id not in known.isr

    yield Until("the one in between is out of the ISR", is_out, _LAGS_MS)
    led = _replica(leader, name)
    begun = led.log.log_end_offset if led is not None else 0
    yield Until("records of the new epoch count", lambda: _watermark(leader, name) > begun, _LAGS_MS, is_needed=False)
    play.mend(unheard)
    yield Until("the follower hears of it", lambda: _epoch(follower, name) >= epoch_between, _SOON_MS)
    play.cut(play.controllers, [follower], both_ways=False)
    play.note(f"node {follower.node_id} has heard of epoch {_epoch(follower, name)} of {name}")
    yield _NOTICED_MS


def late_delta(play: Schedule) -> Steps:
    """A leader hears in one change that `min.insync.replicas` was raised, and that its followers left the ISR.

    They are eligible to lead by the higher number. What they lack, the leader may not acknowledge by the lower one.
    """
    cast = _cast(play)
    if cast is None:
        return
    name, leader, followers = cast
    _set_level(play, name.topic, 1)

    def has_level(level: int) -> Callable[[], bool]:
        def is_so() -> bool:
            replica = _replica(leader, name)
            return replica is not None and replica.settings.min_insync_replicas == level

        return is_so

    yield Until("the level is low", has_level(1), _SOON_MS)
    play.cut([leader], followers)
    yield 2_000
    late = play.cut([leader], play.controllers, both_ways=False)

    def wants_to_be_alone() -> bool:
        replica = _replica(leader, name)
        proposal = replica.state.proposal if replica is not None and replica.state is not None else None
        return proposal is not None and proposal.isr == (leader.node_id,)

    yield Until("the leader asks to be alone in the ISR", wants_to_be_alone, _LAGS_MS)
    active = play.leader()
    if active is None or active.metadata is None:
        return
    quorum = play.cut([active], [one for one in play.controllers if one is not active])
    end_offset = active.metadata.log_end_offset
    _set_level(play, name.topic, 2)
    metadata = active.metadata
    yield Until("the level is raised", lambda: metadata.log_end_offset > end_offset, _SOON_MS)
    play.mend(late)
    play.reset(leader, play.controllers)

    def has_both() -> bool:
        controller = metadata.controller
        known = _known(controller.image, name) if controller is not None else None
        is_alone = known is not None and list(known.isr) == [leader.node_id]
        heard = leader.metadata
        return is_alone and heard is not None and heard.log_end_offset == metadata.log_end_offset

    yield Until("the leader has both records", has_both, _SOON_MS)
    both = metadata.log_end_offset
    unheard = play.cut(play.controllers, [leader], both_ways=False)
    play.mend(quorum)
    play.reset(active, play.controllers)
    yield Until("both are committed", lambda: metadata.committed_offset >= both, _SOON_MS)
    play.note(f"node {leader.node_id} is about to hear of a higher level for {name}, and that it is alone")
    play.mend(unheard)
    play.reset(leader, play.controllers)
    yield Until("the leader has heard of it", has_level(2), _SOON_MS)
    yield _NOTICED_MS


def late_request(play: Schedule) -> Steps:
    """A leader asks to have a follower in the ISR. When that arrives, the follower lives anew, and has lost records.

    Its process has ended, so that it is fenced at once, and then its machine has lost its power.
    """
    cast = _cast(play)
    if cast is None:
        return
    name, leader, (follower, _) = cast
    apart = play.cut([leader], [follower])

    def is_in_sync() -> bool:
        known = _known(_image(play), name)
        return known is not None and follower.node_id in known.isr

    yield Until("the follower is out of the ISR", lambda: not is_in_sync(), _LAGS_MS)
    late = play.cut([leader], play.controllers, both_ways=False)
    play.mend(apart)
    play.reset(leader, [follower])

    def wants_it() -> bool:
        replica = _replica(leader, name)
        proposal = replica.state.proposal if replica is not None and replica.state is not None else None
        return proposal is not None and follower.node_id in proposal.isr

    yield Until("the leader asks to have it in the ISR", wants_it, _SOON_MS)
    epoch = broker_epoch(follower)
    play.cut([leader], [follower])
    if not play.nemesis.may_cut_power(follower) or not play.kill(follower):
        return
    play.nemesis.on_memory_lost(follower)

    def registration() -> BrokerRegistration | None:
        image = _image(play)
        return image.brokers.by_id.get(follower.node_id) if image is not None else None

    def is_fenced() -> bool:
        known = registration()
        return known is not None and known.fenced

    yield Until("the follower is fenced", is_fenced, _STARTED_MS)
    follower.cut_power()
    play.start(follower)

    def is_back() -> bool:
        known = registration()
        return known is not None and known.epoch > epoch and not known.fenced and _replica(follower, name) is not None

    yield Until("the follower is back", is_back, _STARTED_MS)
    play.note(f"node {leader.node_id} is heard, which wants node {follower.node_id} in the ISR of {name}")
    play.mend(late)
    yield _SOON_MS


def overtaken_assignment(play: Schedule) -> Steps:
    """A replica moves, and the controller goes silent that gets its new directory. The move is called off when
    the next controller is known, and it is told that, while the first request is still on its way to the other."""
    cast = _cast(play)
    active = play.leader()
    if cast is None or active is None:
        return
    name, machine, _ = cast
    replica = _replica(machine, name)
    broker = machine.node.broker if machine.node is not None else None
    if replica is None or broker is None or machine.failed_directories:
        return
    path = replica.directory
    target = play.chance.choice([one for one in machine.log_dirs if one != path])
    _move(play, machine, name, target)
    place = replica.topic_id, name.partition
    yield Until(
        "the controller is told",
        lambda: place in broker.directory_assignments._waiting and not broker.directory_assignments._unsent_assignments,
        _SOON_MS,
    )
    play.cut([active], play.nemesis.machines)
    play.note(f"node {active.node_id} is told of {target} for {name} of node {machine.node_id}, and is silent")

    def knows_the_next() -> bool:
        raft = machine.metadata.raft if machine.metadata is not None else None
        next_leader = play.leader()
        return next_leader is not None and raft is not None and raft.leader_id not in (-1, active.node_id)

    yield Until("the next controller is known", knows_the_next, _ELECTED_MS)
    _move(play, machine, name, path)
    yield _SOON_MS


def _move(play: Schedule, machine: Machine, name: TopicPartition, path: str) -> None:
    alter = AlterReplicaLogDirsRequest
    topic = alter.AlterReplicaLogDirTopic(name=name.topic, partitions=[name.partition])
    play.ask(machine, alter(dirs=[alter.AlterReplicaLogDir(path=path, topics=[topic])]), 2)
