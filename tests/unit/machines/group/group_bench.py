"""What the tests of group machines share: a coordinator with its log, its timers and its clients under control.

    groups = Groups()
    ann = groups.join("ann")              # a client of the newest version: asks twice, the second time with its id
    groups.advance(3000)                  # the initial rebalance delay
    groups.sync(ann, {ann.member_id: b"everything"})

Nothing is parked behind a test's back: a `Call` has a `reply` once the machine has answered it. After every decision
the log is replayed into a second machine, which must be in the same state, as far as a state is in the log at all.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.coordinator_machine import (
    CoordinatorDecision,
    CoordinatorRecord,
    EncodedRecords,
    Timer,
    TransactionStamp,
)
from ottla.machines.group.classic.group import ClassicGroup, ClassicState
from ottla.machines.group.classic.joining import JoiningClient
from ottla.machines.group.classic.replies import write_error
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.consumer.heartbeats import Client, Refused
from ottla.machines.group.group_coordinator import GroupCoordinator
from ottla.machines.group.membership import NewIds
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionRecord,
    RemoveTopicRecord,
    SyncGroupRequest,
    TopicRecord,
)
from ottla.wire.record_values import CoordinatorTopic, decode_key, decode_value, encode_key, encode_versioned

NOW_MS = 1_700_000_000_000
NEWEST_JOIN = 9
RETRY_MS = 500
GROUP = "readers"
CHECKS_OF_A_LOAD = 10


class Call:
    """A request that is answered now, later, or never."""

    def __init__(self) -> None:
        self.reply: Any = None

    @property
    def is_answered(self) -> bool:
        return self.reply is not None

    def then(self, reply: Any) -> None:
        assert self.reply is None, "a second answer"
        self.reply = reply

    def failed(self, error: ErrorCode) -> None:
        self.then(error)

    @property
    def error(self) -> ErrorCode:
        """What went wrong; NONE if nothing did."""
        assert self.reply is not None, "no answer yet"
        return self.reply if isinstance(self.reply, ErrorCode) else ErrorCode(self.reply.error_code)

    @property
    def member_id(self) -> str:
        return self.reply.member_id  # type: ignore[no-any-return]

    @property
    def generation(self) -> int:
        return self.reply.generation_id  # type: ignore[no-any-return]


Appended = tuple[TransactionStamp | None, bytes, bytes | None]


class Groups:
    """See the module. `fails_with` lets the next records be refused."""

    def __init__(self, **settings: Any) -> None:
        self.settings = GroupSettings(**settings)
        self.image = MetadataImage()
        self.now_ms = NOW_MS
        self.log: list[Appended | tuple[TransactionStamp, bool]] = []
        self.fails_with: ErrorCode | None = None
        self._ids = 0
        self._timers: dict[Hashable, tuple[int, int, Callable[..., Any]]] = {}
        self._timer_count = 0
        self._checks = 0
        self._loaded, self._loaded_entries = self._fresh(), 0
        self.machine = self._load()

    def _new_id(self) -> str:
        self._ids += 1
        return f"id{self._ids}"

    def _fresh(self) -> GroupCoordinator:
        return GroupCoordinator(self.settings, self.image, NewIds(self._new_id, self._new_id))

    def _replay(self, machine: GroupCoordinator, entries: Sequence[Any]) -> None:
        for entry in entries:
            if len(entry) == 2:
                machine.replay_end_of_transaction(entry[0], committed=entry[1])
                continue
            stamp, encoded_key, encoded_value = entry
            key = decode_key(CoordinatorTopic.CONSUMER_OFFSETS, encoded_key)
            value = None if encoded_value is None else decode_value(key, encoded_value)
            if stamp is None:
                machine.replay(key, value)
            else:
                machine.replay_in_transaction(stamp, key, value)

    def _load(self) -> GroupCoordinator:
        machine = self._fresh()
        self._replay(machine, self.log)
        self._timers.clear()
        self.machine = machine
        self.carry_out(machine.on_loaded(self.now_ms))
        return machine

    def reload(self) -> None:
        """Another coordinator takes over: only what is in the log is known to it."""
        for waiter in self.machine.on_unloaded():
            waiter.failed(ErrorCode.NOT_COORDINATOR)
        self._load()

    # As the driver does

    def carry_out(self, decision: CoordinatorDecision[Any], asking: Call | None = None) -> Any:
        """`asking` is told of a failure by the handler of its request, if the machine has not told it."""
        if decision.records and self.fails_with is not None:
            error, self.fails_with = self.fails_with, None
            refused = self.machine.on_refused(decision, error, self.now_ms)
            assert not refused.records, "what is refused leads to nothing in the log"
            self.carry_out(refused)
            if asking is not None and not asking.is_answered:
                asking.failed(write_error(error))
            return error
        for record in decision.records:
            self._append(record, decision.transaction)
        self._set(decision.timers)
        for waiter, reply in decision.answers:
            if isinstance(reply, ErrorCode):
                waiter.failed(reply)
            else:
                waiter.then(reply)
        self.check_against_log()
        if decision.followed_by is not None:
            self.carry_out(decision.followed_by(self.machine, self.now_ms))
        return decision.reply

    def carry_out_encoded(self, decided: tuple[Any, EncodedRecords | None, Sequence[Timer]]) -> Any:
        """The same for a command whose records are bytes."""
        reply, records, timers = decided
        if records:
            if self.fails_with is not None:
                error, self.fails_with = self.fails_with, None
                return error
            self.log += [(None, key, value) for key, value in records.encoded]
            records.replay(self.machine)
        self._set(timers)
        self.check_against_log()
        return reply

    def _set(self, timers: Sequence[Timer]) -> None:
        for name, delay_ms, expire in timers:
            self._timers.pop(name, None)
            if expire is not None:
                self._timer_count += 1
                self._timers[name] = self.now_ms + delay_ms, self._timer_count, expire

    def _append(self, record: CoordinatorRecord, stamp: TransactionStamp | None) -> None:
        value = None if record.value is None else encode_versioned(record.value, record.version)
        self.log.append((stamp, encode_key(record.key), value))
        if stamp is None:
            self.machine.replay(record.key, record.value)
        else:
            self.machine.replay_in_transaction(stamp, record.key, record.value)

    def end_transaction(self, stamp: TransactionStamp, *, committed: bool) -> None:
        self.log.append((stamp, committed))
        self.machine.replay_end_of_transaction(stamp, committed=committed)
        self.check_against_log()

    def advance(self, by_ms: int) -> None:
        """Moves time; what is due on the way happens, in order."""
        end_ms = self.now_ms + by_ms
        while due := [(at, number, name) for name, (at, number, _) in self._timers.items() if at <= end_ms]:
            at, _, name = min(due)
            self.now_ms = max(self.now_ms, at)
            expire = self._timers.pop(name)[2]
            is_refused = self.fails_with is not None
            self.carry_out(expire(self.machine, self.now_ms))
            if is_refused and self.fails_with is None:
                self._timer_count += 1
                self._timers[name] = self.now_ms + RETRY_MS, self._timer_count, expire
        self.now_ms = end_ms

    @property
    def timers(self) -> set[Hashable]:
        return {name for name in self._timers if name[0] != "expiration"}

    def check_against_log(self) -> None:
        """A machine that is loaded now has everything that was written, and nothing else.

        Replaying is all that ever happened to it; so it is mostly the one of the last check, which reads on.
        """
        self._checks += 1
        if self._checks % CHECKS_OF_A_LOAD == 0:
            self._loaded, self._loaded_entries = self._fresh(), 0
        loaded = self._loaded
        self._replay(loaded, self.log[self._loaded_entries :])
        self._loaded_entries = len(self.log)
        assert loaded.offsets.by_group == self.machine.offsets.by_group
        assert loaded.offsets.pending == self.machine.offsets.pending
        assert set(loaded.groups) == set(self.machine.groups)
        for group_id, group in self.machine.groups.items():
            if isinstance(group, ClassicGroup):
                assert loaded.groups[group_id].written == group.written, group_id
            if isinstance(group, ConsumerGroup) or group.state in (ClassicState.EMPTY, ClassicState.STABLE):
                assert in_the_log(loaded.groups[group_id]) == in_the_log(group), group_id

    # Asking, as clients do

    def group(self, group_id: str = GROUP) -> Any:
        return self.machine.groups[group_id]

    @property
    def state(self) -> str:
        return self.group().state_name  # type: ignore[no-any-return]

    def ask_join(
        self,
        client_id: str = "client",
        member_id: str = "",
        *,
        version: int = NEWEST_JOIN,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] | Sequence[tuple[str, bytes]] | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> Call:
        """One JoinGroup."""
        call = Call()
        offered = protocols if protocols is not None else {"range": subscription("orders")}
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in (offered.items() if isinstance(offered, Mapping) else offered)
            ],
        )
        client = JoiningClient(client_id, "/127.0.0.1", version)
        self.carry_out(self.machine.members.join(request, client, call, self.now_ms), call)
        return call

    def join(self, client_id: str = "client", **details: Any) -> Call:
        """Joins as a new member does, by asking again with the id that it is given (KIP-394)."""
        call = self.ask_join(client_id, **details)
        if call.is_answered and call.error is ErrorCode.MEMBER_ID_REQUIRED:
            return self.ask_join(client_id, call.member_id, **details)
        return call

    def sync(
        self,
        member: Call | str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance_id: str | None = None,
        group_id: str = GROUP,
        **more: Any,
    ) -> Call:
        call = Call()
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=self.group(group_id).generation if generation is None else generation,
            member_id=member if isinstance(member, str) else member.member_id,
            group_instance_id=instance_id,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
            **more,
        )
        self.carry_out(self.machine.members.sync(request, call, self.now_ms), call)
        return call

    def heartbeat(
        self,
        member: Call | str,
        *,
        generation: int | None = None,
        instance_id: str | None = None,
        group_id: str = GROUP,
    ) -> ErrorCode:
        if generation is None:
            generation = self.group(group_id).generation
        request = HeartbeatRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member if isinstance(member, str) else member.member_id,
            group_instance_id=instance_id,
        )
        return ErrorCode(self.carry_out(self.machine.members.heartbeat(request, self.now_ms)).error_code)

    def leave(self, *members: Call | str, instance_id: str | None = None, group_id: str = GROUP) -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[
                LeaveGroupRequest.MemberIdentity(
                    member_id=member if isinstance(member, str) else member.member_id, group_instance_id=instance_id
                )
                for member in members
            ],
        )
        response = self.carry_out(self.machine.members.leave(request, self.now_ms))
        if isinstance(response, ErrorCode):
            return [response]
        return [ErrorCode(member.error_code) for member in response.members]

    def settled(self, *names: str, **details: Any) -> list[Call]:
        """A stable group of these members, the first of which leads; each is given its own name."""
        calls = [self.join(name, **details) for name in names]
        self.advance(self.settings.initial_rebalance_delay_ms)
        self.advance(self.settings.initial_rebalance_delay_ms)
        leader = next(call for call in calls if call.reply.leader == call.member_id)
        self.sync(leader, {call.member_id: name.encode() for call, name in zip(calls, names, strict=True)})
        for call in calls:
            if call is not leader:
                self.sync(call)
        assert self.state == "Stable"
        return calls

    def settled_static(self, *instance_ids: str, **details: Any) -> list[Call]:
        """The same of static members, each of which is given the name of its instance."""
        calls = [self.ask_join(f"of {name}", instance_id=name, **details) for name in instance_ids]
        self.advance(2 * self.settings.initial_rebalance_delay_ms)
        given = {call.member_id: name.encode() for call, name in zip(calls, instance_ids, strict=True)}
        for call, name in zip(calls, instance_ids, strict=True):
            self.sync(call, given, instance_id=name)
        assert self.state == "Stable"
        return calls

    # The consumer protocol

    def create_topic(self, name: str, partitions: int) -> Uuid:
        """The topic is in the cluster from now on, and the groups are told."""
        topic_id = Uuid(name.encode().ljust(16, b"."))
        self._change_topics(
            name,
            TopicRecord(name=name, topic_id=topic_id),
            *(PartitionRecord(topic_id=topic_id, partition_id=index, replicas=(1,)) for index in range(partitions)),
        )
        return topic_id

    def grow_topic(self, name: str, partitions: int) -> None:
        topic = self.image.topics.by_name[name]
        added = range(len(topic.partitions), partitions)
        self._change_topics(
            name,
            *(PartitionRecord(topic_id=topic.id, partition_id=index, replicas=(1,)) for index in added),
            came_or_went=False,
        )

    def delete_topic(self, name: str) -> None:
        self._change_topics(name, RemoveTopicRecord(topic_id=self.image.topics.by_name[name].id))

    def _change_topics(self, name: str, *records: Any, came_or_went: bool = True) -> None:
        for record in records:
            self.image.replay(record)
        self.machine.on_topics_changed({name}, came_or_went=came_or_went)

    def beat(self, **fields: Any) -> Any:
        """One ConsumerGroupHeartbeat: the reply, or why there is none."""
        request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, **fields})
        client = Client("client", "/127.0.0.1")
        reply = self.carry_out(self.machine.members.consumer_heartbeat(request, client, self.now_ms))
        return reply.error if isinstance(reply, Refused) else reply

    # Offsets

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int],
        *,
        member_id: str = "",
        generation: int = -1,
        group_id: str = GROUP,
        metadata: str | None = "",
        version: int = 9,
        **more: Any,
    ) -> ErrorCode | list[ErrorCode]:
        """Commits; the error of the whole, or that of each partition."""
        topics: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_leader_epoch=3, committed_metadata=metadata
            )
            topics.setdefault(topic, []).append(partition)
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=name, topic_id=self._topic_id(name), partitions=partitions
                )
                for name, partitions in topics.items()
            ],
            **more,
        )
        outcome = self.carry_out_encoded(self.machine.commit_offsets(request, version, self.now_ms))
        if isinstance(outcome, ErrorCode):
            return outcome
        return [ErrorCode(part.error_code) for topic in outcome.topics for part in topic.partitions]

    def _topic_id(self, name: str) -> Uuid:
        """As the broker finds it before the coordinator is asked."""
        topic = self.image.topics.by_name.get(name)
        return ZERO_UUID if topic is None else topic.id

    def committed(
        self, topics: Mapping[str, Sequence[int]] | None = None, *, group_id: str = GROUP, require_stable: bool = False
    ) -> dict[tuple[str, int], int | ErrorCode]:
        """What a fetch tells, by partition: the offset, or what stands in its way."""
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
        if topics is not None:
            asked.topics = [
                OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        fetched = self.machine.fetch_offsets(asked, require_stable=require_stable)
        return {
            (topic.name, part.partition_index): ErrorCode(part.error_code) if part.error_code else part.committed_offset
            for topic in fetched.topics
            for part in topic.partitions
        }

    def records(self, start: int = 0) -> list[tuple[Any, Any]]:
        """What has been written since, as keys and values."""
        found = []
        for entry in self.log[start:]:
            assert len(entry) == 3
            key = decode_key(CoordinatorTopic.CONSUMER_OFFSETS, entry[1])
            found.append((key, None if entry[2] is None else decode_value(key, entry[2])))
        return found


def in_the_log(group: ClassicGroup | ConsumerGroup) -> Any:
    """What of a group is in its records; a simple one has none. Of a consumer group that is everything."""
    if isinstance(group, ConsumerGroup):
        in_memory = ("has_even_target", "hashed", "is_metadata_stale", "are_regexes_stale", "rejoining")
        return {name: getattr(group, name) for name in group.__slots__ if name not in in_memory}
    if group.state is ClassicState.STABLE:
        return group.record({member.member_id: member.assignment for member in group.members.values()})
    assert group.state is ClassicState.EMPTY
    return "simple" if group.protocol_type is None else group.empty_record(group.generation, group.state_timestamp_ms)


def subscription(*topics: str) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=topics, user_data=None), 1)
