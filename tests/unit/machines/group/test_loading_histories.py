"""A coordinator that is loaded from its log is the one that wrote it, however much of the log was cleaned meanwhile.

Random histories, from seeds: members of both protocols that change sides, static ones that go and come, offsets with
and without transactions, deletions, topics that grow and whose offsets go, and days that pass. Now and then the log is
cleaned, as the cleaner would, and loaded as a broker does, batch by batch through `replay_batch`: what is loaded is
what the live coordinator has. Sometimes it takes over, and the history goes on with it and with the log as it is then.

Meanwhile no two members of the consumer protocol think that a partition is theirs, nor are to have the same one.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from ottla.broker.coordination.gathered_batch import GatheredBatch, size_of
from ottla.broker.coordination.loading import replay_batch
from ottla.machines.coordinator_machine import TransactionStamp
from ottla.machines.group.classic.group import ClassicGroup, ClassicState
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.group_coordinator import GroupCoordinator
from ottla.machines.group.settings import MigrationPolicy
from ottla.records.batch import read_header
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.wire.messages import OffsetDeleteRequest, TxnOffsetCommitRequest
from ottla.wire.record_values import CoordinatorTopic
from tests.unit.machines.group.group_bench import GROUP, Groups, in_the_log
from tests.unit.machines.group.test_group_histories import Consumer
from tests.unit.machines.group.test_mixed_histories import Application, come_to_rest, member_id_of, owned_in

STEPS = 150
DAY_MS = 24 * 60 * 60 * 1000
GROUPS = (GROUP, GROUP, "simple", "")
TOPICS = ("orders", "payments")
PRODUCERS = (TransactionStamp(1, 0), TransactionStamp(2, 0), TransactionStamp(3, 0))

Entry = Any
"""Of a bench's log: a record with its transaction, or the end of one."""


def is_end(entry: Entry) -> bool:
    return len(entry) == 2


def cleaned(log: Sequence[Entry], until: int, *, without_tombstones: bool) -> list[Entry]:
    """The log after what is before `until` was cleaned: the last record of each key, none of aborted transactions."""
    outcomes: list[bool | None] = [None] * len(log)
    for at, entry in enumerate(log):
        if is_end(entry):
            for earlier in range(at - 1, -1, -1):
                if is_end(log[earlier]) and log[earlier][0] == entry[0]:
                    break
                if not is_end(log[earlier]) and log[earlier][0] == entry[0]:
                    outcomes[earlier] = entry[1]
    still_open = (at for at, entry in enumerate(log) if not is_end(entry) and entry[0] and outcomes[at] is None)
    until = min(until, next(still_open, len(log)))  # The cleaner stops at the last stable offset.
    last = {entry[1]: at for at, entry in enumerate(log[:until]) if not is_end(entry) and outcomes[at] is not False}
    kept = [entry for at, entry in enumerate(log[:until]) if is_end(entry) or last.get(entry[1]) == at]
    if without_tombstones:
        kept = [entry for entry in kept if is_end(entry) or entry[2] is not None]
    return [*kept, *log[until:]]


def loaded(groups: Groups, log: Sequence[Entry]) -> GroupCoordinator:
    """As a broker loads it. Records that follow each other in one transaction, or in none, are one batch."""
    machine = groups._fresh()
    open_batch: list[Entry] = []

    def take(data: bytes) -> None:
        replay_batch(machine, CoordinatorTopic.CONSUMER_OFFSETS, data, 0, read_header(data, 0), nobody_is_broken)

    def close_batch() -> None:
        if open_batch:
            batch = GatheredBatch(open_batch[0][0], base_sequence=0, compression=0)
            records = [(key, value) for _, key, value in open_batch]
            batch.add(records, size_of(records), groups.now_ms)
            take(bytes(batch.build(0, -1)))
            open_batch.clear()

    for entry in log:
        if open_batch and (is_end(entry) or entry[0] != open_batch[0][0] or len(open_batch) >= 5):
            close_batch()
        if is_end(entry):
            marker = EndTransactionMarker(entry[1], 0)
            take(bytes(build_end_transaction_marker(marker, *entry[0], groups.now_ms)))
        else:
            open_batch.append(entry)
    close_batch()
    return machine


def nobody_is_broken(_subject: str | None, problem: Exception) -> None:
    raise problem


def offsets_of(machine: GroupCoordinator) -> tuple[Any, Any]:
    """What is committed, and what is pending. Only comparisons of the order of commits are state."""
    kept = {
        place[:3]: machine.offsets.get(*place[:3])._replace(order=0)  # type: ignore[union-attr]
        for place in list(machine.offsets.each())
    }
    pending = {
        (producer_id, group_id, topic, partition): offset._replace(order=0)
        for producer_id, groups in machine.offsets.pending.items()
        for group_id, topics in groups.items()
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }
    return kept, pending


def groups_of(machine: GroupCoordinator, like: GroupCoordinator) -> dict[str, Any]:
    """What of each group is in the log. A group that only keeps offsets is there while it has some."""
    found: dict[str, Any] = {}
    for group_id, group in machine.groups.items():
        live = like.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            found[group_id] = in_the_log(group)
        elif group.written is not None:
            is_settled = isinstance(live, ClassicGroup) and live.state in (ClassicState.EMPTY, ClassicState.STABLE)
            found[group_id] = (group.written, in_the_log(group) if is_settled else None)
    return found


def check_loads(groups: Groups, random: Random) -> None:
    until = random.randint(0, len(groups.log))
    for log in (groups.log, cleaned(groups.log, until, without_tombstones=random.random() < 0.5)):
        machine = loaded(groups, log)
        assert offsets_of(machine) == offsets_of(groups.machine)
        assert groups_of(machine, groups.machine) == groups_of(groups.machine, groups.machine)


def fail_over(groups: Groups, random: Random) -> None:
    """Another coordinator takes over; what it has of the log was cleaned."""
    until = random.randint(0, len(groups.log))
    groups.log[:] = cleaned(groups.log, until, without_tombstones=random.random() < 0.5)
    groups._loaded, groups._loaded_entries = groups._fresh(), 0
    groups.reload()


def commit_in_transaction(groups: Groups, random: Random) -> None:
    stamp = random.choice(PRODUCERS)
    partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
        partition_index=random.randrange(2), committed_offset=random.randrange(1000)
    )
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=random.choice(TOPICS), partitions=[partition])
    request = TxnOffsetCommitRequest(
        group_id=random.choice(GROUPS), producer_id=stamp.producer_id, producer_epoch=0, topics=[topic]
    )
    groups.carry_out(groups.machine.commit_offsets_in_transaction(request, groups.now_ms))


def delete_offsets(groups: Groups, random: Random) -> None:
    partitions = [OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in range(2)]
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=random.choice(TOPICS), partitions=partitions)
    request = OffsetDeleteRequest(group_id=random.choice(GROUPS), topics=[topic])
    groups.carry_out(groups.machine.delete_offsets(request, groups.now_ms))


def act(groups: Groups, applications: list[Application], random: Random) -> None:
    chance = random.random()
    if chance < 0.6:
        application = random.choice(applications)
        application.act(random)
        if random.random() < 0.06:
            application.start(random)
    elif chance < 0.72:
        place = random.choice(TOPICS), random.randrange(2)
        metadata = random.choice(["", "", "a note"])
        groups.commit({place: random.randrange(1000)}, group_id=random.choice(GROUPS), metadata=metadata)
    elif chance < 0.82:
        commit_in_transaction(groups, random)
    elif chance < 0.9:
        groups.end_transaction(random.choice(PRODUCERS), committed=random.random() < 0.6)
    elif chance < 0.93:
        delete_offsets(groups, random)
    elif chance < 0.94:
        groups.carry_out(groups.machine.delete_group(random.choice(GROUPS), groups.now_ms))
    elif chance < 0.95:
        groups.carry_out(groups.machine.on_topics_deleted([random.choice(TOPICS)], groups.now_ms))
    elif chance < 0.97:
        groups.grow_topic("orders", len(groups.image.topics.by_name["orders"].partitions) + 1)
    elif chance < 0.98:
        groups.advance(random.choice([DAY_MS, 8 * DAY_MS]))
    else:
        fail_over(groups, random)


def check_owners(groups: Groups, applications: list[Application]) -> None:
    owned = owned_in(groups)
    assert len(owned) == len(set(owned))
    group = groups.machine.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return
    consumers = [one for one in applications if isinstance(one.speaks, Consumer) and one.speaks.epoch > 0]
    held = [place for one in consumers if member_id_of(one) in group.members for place in one.has]
    assert len(held) == len(set(held))
    targets = [(id, index) for target in group.target.values() for id, indexes in target.items() for index in indexes]
    assert len(targets) == len(set(targets))


def live_through(seed: int) -> None:
    random = Random(seed)
    groups = Groups(
        initial_rebalance_delay_ms=random.choice([0, 3000]),
        consumer_assignment_interval_ms=random.choice([0, 1000]),
        migration_policy=random.choice([*MigrationPolicy, MigrationPolicy.BIDIRECTIONAL]),
    )
    groups.create_topic("orders", 4)
    groups.create_topic("payments", 2)
    applications = [Application(groups, number, random) for number in range(4)]
    for _ in range(STEPS):
        act(groups, applications, random)
        if random.random() < 0.3:
            groups.advance(random.choice([100, 1000, 5000, 30_000]))
        if random.random() < 0.15:
            check_loads(groups, random)
        check_owners(groups, applications)
    fail_over(groups, random)
    groups.advance(5 * 60 * 1000)
    come_to_rest(groups, applications)
    check_loads(groups, random)
    for stamp in PRODUCERS:
        groups.end_transaction(stamp, committed=False)
    groups.advance(10 * DAY_MS)
    assert list(groups.machine.offsets.each()) == [], "everything is forgotten at last"
    assert groups.machine.groups == {}
    assert loaded(groups, cleaned(groups.log, len(groups.log), without_tombstones=True)).groups == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_what_is_loaded_is_what_was_written(seed: int) -> None:
    live_through(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 808, 40))
def test_what_is_loaded_is_what_was_written_in_many_histories(seed: int) -> None:
    for one in range(seed, seed + 40):
        live_through(one)
