"""One run of `ottla restore`: topics are made, their records sent and compared, and then the rest is put back.

Theory of operation. While it is restored, a topic has settings under which nothing is deleted, compacted, refused for
its age or stamped anew (`WHILE_RESTORED`): the records have gone through all that before. It gets its own when its
records were compared, one after the other, with the back-up. Then groups are given their places.

What is restored must not be deleted by a default of the destination. So a topic is asked for what is in force before it
has a record. Where the source kept records for longer by its defaults, the topic is set to that. A topic that
was there before the restore keeps what it was set to.

Records are sent in the order of the back-up by one idempotent producer, batch by batch, undecoded. Offsets are the
destination's own, and have no gaps: what compaction, deletion and markers took in the source takes none here. So a
group's place is where the record is that it would have read next (`SavedRecords.counts_before`).

A restore that was stopped continues: the number of records that a partition has behind its base is the number that are
restored. So does one of a later run of the same back-up: it adds what that run has more, if nobody has written to the
topic since. A record that the destination has in another place than it should have means that somebody else writes to
the topic, and ends the restore.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.backup import cluster_state
from ottla.cli.backup.comparing import Comparing
from ottla.cli.backup.restore_state import COMPARED, MAKING, SENDING, SETTLED, RestoredTopic, StateFile
from ottla.cli.backup.runs import BackupDirectory, Chain, PartitionKey, Run, SavedTopic, common_end, key_of
from ottla.cli.backup.saved_records import DamagedPiece, SavedRecords
from ottla.cli.bars import ProgressBar
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.cli.records.connecting import Cluster
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.forwarding_producer import ForwardingProducer
    from ottla.client.producer.forwarded_batch import ForwardedBatch

FOREVER: Final = str(2**63 - 1)
WHILE_RESTORED: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": FOREVER,
    "message.timestamp.after.max.ms": FOREVER,
    # Batches are to be stored as they are sent: then they are compared without a look at their records.
    "compression.type": "producer",
}
_MAX_MESSAGE: Final = "max.message.bytes"
_LEAST_REQUEST_BYTES: Final = 1 << 20
_ROOM_BYTES: Final = 64 << 10
"""Around a batch in its request."""
_BUFFER_BYTES: Final = 32 << 20
_DELIVERY_MS: Final = 600_000
_SENT_AT_ONCE: Final = 8
_COMPARED_AT_ONCE: Final = 8
"""Partitions, of each of which a block is in memory."""
_STABLE_S: Final = 1.0
_KNOWN_WITHIN_S: Final = 30.0
_LOOK_S: Final = 2.0
_PATIENCE_S: Final = 60.0

TOPICS: Final = "topics"
GROUPS: Final = "groups"
ACLS: Final = "acls"
QUOTAS: Final = "quotas"
USERS: Final = "users"
SETTINGS: Final = "settings"
PARTS: Final = (TOPICS, GROUPS, ACLS, QUOTAS, USERS, SETTINGS)


class CannotRestore(OttlaError):
    """The back-up, the destination and the options do not go together."""


class RestoreWish(NamedTuple):
    """What is to be restored, and how."""

    is_chosen: Callable[[str], bool]
    is_group_chosen: Callable[[str], bool]
    parts: frozenset[str] = frozenset(PARTS)
    names: Mapping[str, str] = {}
    """Other names for topics, by those in the back-up."""
    replication_factor: int | None = None
    is_appending: bool = False
    """Whether topics may have records already."""
    skips_damaged: bool = False
    compares: bool = True
    passwords: Mapping[str, str] = {}


@dataclass(slots=True)
class Restored:
    """What a restore has done."""

    topics: int = 0
    records: int = 0
    """That are at the destination, sent by this restore or before."""
    size_bytes: int = 0
    """Sent by this one."""
    compared: int = 0
    groups: int = 0
    others: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Topic:
    """One topic on its way."""

    saved: SavedTopic
    state: RestoredTopic
    sources: list[SavedRecords]
    counts: list[int] = field(default_factory=list)
    """Records of each partition that are at the destination."""
    is_whole: bool = True


class Restoring:
    """Used once."""

    def __init__(
        self,
        cluster: "Cluster",
        directory: BackupDirectory,
        run: Run,
        state_path: str | None,
        wish: RestoreWish,
        bar: ProgressBar,
    ) -> None:
        self._cluster = cluster
        self._directory = directory
        self._run = run
        self._state_path = state_path
        self._wish = wish
        self._bar = bar
        self.done = Restored()
        self._chains: dict[PartitionKey, Chain] = {}

    def run(self) -> Restored:
        with self._cluster.admin() as admin:
            self._restore(admin)
        return self.done

    def _restore(self, admin: "Admin") -> None:
        cluster_id = admin.describe_cluster().cluster_id
        path = self._state_path or self._directory.restore_path(cluster_id)
        self._file = StateFile(self._directory, path)
        self._state = self._file.load(cluster_id)
        self._chains = self._directory.chains(self._run.number)
        wish = self._wish
        topics: list[_Topic] = []
        if TOPICS in wish.parts:
            topics = self._prepare(admin)
            self._send(topics)
            self._compare(topics)
            self._settle(admin, topics)
        else:
            topics = self._restored_before(admin)
        if GROUPS in wish.parts:
            self._restore_groups(admin, topics)
        self._restore_others(admin)

    def _say(self, text: str) -> None:
        self._bar.say(f"ottla restore: {text}")

    def _problem(self, text: str) -> None:
        self.done.problems.append(text)
        self._say(text)

    def _save(self) -> None:
        self._file.save(self._state)

    # --- topics ---

    def _chosen(self) -> list[SavedTopic]:
        return [topic for topic in self._run.topics if self._wish.is_chosen(topic.name)]

    def _saved_records(self, topic: SavedTopic, state: RestoredTopic, partition: int) -> SavedRecords:
        """As they are now: what is skipped may have changed."""
        chain = self._chains.get(PartitionKey(topic.name, topic.topic_id, partition)) or Chain(self._run.isolation)
        return SavedRecords(
            self._directory,
            replace(chain, log_start=state.log_starts[partition]),
            state.skipped.get(str(partition), ()),
        )

    def _sources(self, topic: SavedTopic, state: RestoredTopic) -> list[SavedRecords]:
        for one in topic.partitions[len(state.log_starts) :]:
            state.log_starts.append(one.log_start)
            state.compared.append(0)
        return [self._saved_records(topic, state, partition) for partition in range(len(topic.partitions))]

    def _prepare(self, admin: "Admin") -> list[_Topic]:
        """Makes the topics, or finds those that an earlier restore has made. Refuses all before it makes one."""
        chosen = self._chosen()
        names = {topic.name: self._wish.names.get(topic.name, topic.name) for topic in chosen}
        if len(set(names.values())) < len(names):
            raise CannotRestore("two topics would have the same name")
        there = {one.name for one in admin.list_topics(include_internal=True)}
        found = {
            one.name: one
            for one in cluster_state.described_topics(admin, [n for n in names.values() if n in there], self._problem)
        }
        prepared: list[_Topic] = []
        for saved in chosen:
            name = names[saved.name]
            state = self._adopted(admin, saved, name, found.get(name))
            prepared.append(_Topic(saved, state, self._sources(saved, state)))
        self._save()
        for topic in prepared:
            if topic.state.stage == MAKING:
                self._make(admin, topic, found.get(topic.state.name))
        self.done.topics = len(prepared)
        return prepared

    def _adopted(self, admin: "Admin", saved: SavedTopic, name: str, there: "TopicDescription | None") -> RestoredTopic:
        """The state of a topic, begun anew if its place is of no use: the topic is gone, or another one."""
        kept_as = f"{saved.name}/{name}"
        state = self._state.topics.get(kept_as)
        if state is not None and there is not None and state.topic_id == there.topic_id is not None:
            if state.run < self._run.number:
                self._add_run(admin, saved, state)
            if state.run == self._run.number:
                return state
        new = RestoredTopic(name, self._run.number, existed=there is not None)
        if state is not None and state.stage == MAKING and state.topic_id is None and there is not None:
            new.existed, new.before, new.defaults = state.existed, state.before, state.defaults
        self._state.topics[kept_as] = new
        if there is None:
            return new
        if len(there.partitions) < len(saved.partitions):
            raise CannotRestore(
                f"topic {name} exists with {counted(len(there.partitions), 'partition')}, and the back-up has "
                f"{len(saved.partitions)}: delete it, add partitions, or use --rename {saved.name}=NAME"
            )
        ends = self._ends(admin, name, len(there.partitions))
        if any(begin != end for begin, end in ends) and not self._wish.is_appending:
            raise CannotRestore(
                f"topic {name} exists and has records: delete it first, use --rename {saved.name}=NAME to restore "
                "beside it, or --append to write behind them"
            )
        return new

    def _add_run(self, admin: "Admin", saved: SavedTopic, state: RestoredTopic) -> None:
        """Has a topic of an earlier run continue with this one, if what it has is the beginning of what this one has.

        Raises `CannotRestore` if not.
        """
        before = self._directory.chains(state.run)
        ends = self._ends(admin, state.name, len(state.bases))
        for one in saved.partitions[: len(state.log_starts)]:
            key = key_of(saved, one)
            count = ends[one.partition][1] - state.bases[one.partition]
            if not count:
                continue
            if state.stage == SETTLED and count != state.compared[one.partition]:
                raise CannotRestore(
                    f"{state.name}-{one.partition} has {counted(count, 'record')}, and {state.compared[one.partition]} "
                    f"were restored from run {state.run}: somebody has written to it. Delete the topic, or use "
                    f"--rename {saved.name}=NAME"
                )
            common = common_end(before.get(key), self._chains.get(key))
            [same] = self._saved_records(saved, state, one.partition).counts_before([common]).values()
            if same < count:
                raise CannotRestore(
                    f"{state.name}-{one.partition} was restored from run {state.run}, and run {self._run.number} has "
                    f"other records from offset {common} on. Delete the topic, or use --rename {saved.name}=NAME"
                )
        self._say(f"topic {state.name}: run {self._run.number} is added to what was restored of run {state.run}")
        state.run, state.stage, state.before = self._run.number, MAKING, None

    def _ends(self, admin: "Admin", name: str, partitions: int) -> list[tuple[int, int]]:
        """First offset and end of each partition."""
        from ottla.client.admin.records import OffsetSpec

        at = [TopicPartition(name, one) for one in range(partitions)]
        first = admin.list_offsets(dict.fromkeys(at, OffsetSpec.EARLIEST)).raise_first()
        last = admin.list_offsets(dict.fromkeys(at, OffsetSpec.LATEST)).raise_first()
        return [(first[one].offset or 0, last[one].offset or 0) for one in at]

    def _make(self, admin: "Admin", topic: _Topic, there: "TopicDescription | None") -> None:
        from ottla.client.admin.configs import ConfigResource
        from ottla.client.admin.topics import NewTopic
        from ottla.client.errors import InvalidConfig, InvalidReplicationFactor

        saved, state = topic.saved, topic.state
        settings = self._while_restored(topic)
        if there is None:
            replicas = self._wish.replication_factor or saved.replication_factor
            # What it would delete by default is asked for before it is set otherwise.
            at_first = {name: value for name, value in settings.items() if name not in cluster_state.DELETING}
            new = NewTopic(state.name, len(saved.partitions), replicas, config=at_first)
            try:
                admin.create_topics(new)
            except InvalidConfig as problem:  # of before there were `message.timestamp.before.max.ms` and its twin
                raise CannotRestore(f"topic {state.name}: {problem} (a restore needs Kafka 3.6 or later)") from None
            except InvalidReplicationFactor as problem:
                raise CannotRestore(
                    f"topic {state.name}: {problem}; --replication-factor N takes another one"
                ) from None
        described = _once_known(lambda: admin.describe_topics([state.name])[state.name])
        if state.before is None:
            self._ask_settings(admin, state)
            self._save()
        resource = ConfigResource.topic(state.name)
        _once_known(lambda: admin.incremental_alter_configs({resource: settings}).raise_first())
        if len(described.partitions) < len(saved.partitions):
            admin.create_partitions({state.name: len(saved.partitions)}).raise_first()
            described = _once_known(lambda: admin.describe_topics([state.name])[state.name])
        ends = _once_known(lambda: self._ends(admin, state.name, len(described.partitions)))
        state.topic_id = described.topic_id
        state.bases += [end for _, end in ends[len(state.bases) :]]
        state.stage = SENDING
        self._save()

    def _ask_settings(self, admin: "Admin", state: RestoredTopic) -> None:
        """What the topic is set to, and what is in force where it is not."""
        from ottla.client.admin.configs import ConfigResource, ConfigSource

        resource = ConfigResource.topic(state.name)
        found = _once_known(lambda: admin.describe_configs([resource]).raise_first()[resource])
        own = {name: one.value or "" for name, one in found.items() if one.source is ConfigSource.DYNAMIC_TOPIC}
        is_new = not state.existed and state.topic_id is None
        state.before = {} if is_new else {name: value for name, value in own.items() if state.given.get(name) != value}
        state.defaults |= {
            name: found[name].value or "" for name in cluster_state.DELETING if name in found and name not in own
        }

    def _while_restored(self, topic: _Topic) -> dict[str, str]:
        largest = max((source.largest_batch() for source in topic.sources), default=0)
        own = int(topic.saved.config.get(_MAX_MESSAGE, 0))
        settings = dict(WHILE_RESTORED)
        if max(largest, own) > _LEAST_REQUEST_BYTES - _ROOM_BYTES:
            settings[_MAX_MESSAGE] = str(max(largest, own) + _ROOM_BYTES)
        return settings

    # --- records ---

    def _send(self, topics: list[_Topic]) -> None:
        from ottla.client.blocking.forwarding_producer import ForwardingProducer

        largest = max((source.largest_batch() for topic in topics for source in topic.sources), default=0)
        settings = self._cluster.producer_settings(
            client_id="ottla-restore",
            acks="all",
            enable_idempotence=True,
            max_request_size=max(_LEAST_REQUEST_BYTES, largest + _ROOM_BYTES),
            buffer_memory=max(_BUFFER_BYTES, 2 * largest),
            delivery_timeout_ms=_DELIVERY_MS,
            max_block_ms=_DELIVERY_MS,
        )
        with self._cluster.admin() as admin:
            for topic in topics:
                self._find_place(admin, topic)
        self._bar.restart("restored", sum(source.raw_bytes for topic in topics for source in topic.sources))
        producer = ForwardingProducer(settings)
        with producer:
            lanes = deque(
                lane for topic in topics if topic.state.stage == SENDING for lane in self._lanes(producer, topic)
            )
            active: deque[Iterator[None]] = deque()
            while lanes or active:
                while lanes and len(active) < _SENT_AT_ONCE:
                    active.append(lanes.popleft())
                lane = active.popleft()
                if next(lane, _END) is not _END:
                    active.append(lane)
                self._bar.show()

    def _find_place(self, admin: "Admin", topic: _Topic) -> None:
        """How many records of each partition are there. One that a request on its way still adds is waited for."""
        state = topic.state
        count = len(topic.sources)
        ends = self._ends(admin, state.name, len(state.bases))
        while state.stage == SENDING and any(end > base for (_, end), base in zip(ends, state.bases, strict=True)):
            sleep(_STABLE_S)
            before, ends = ends, self._ends(admin, state.name, len(state.bases))
            if before == ends:
                break
        topic.counts = [max(end - base, 0) for (_, end), base in zip(ends, state.bases, strict=True)][:count]

    def _lanes(self, producer: "ForwardingProducer", topic: _Topic) -> Iterator[Iterator[None]]:
        for partition in range(len(topic.sources)):
            yield self._lane(producer, topic, partition)

    def _lane(self, producer: "ForwardingProducer", topic: _Topic, partition: int) -> Iterator[None]:
        """Sends a partition's records, some at a time."""
        state, source = topic.state, topic.sources[partition]
        at = TopicPartition(state.name, partition)
        in_flight: deque[tuple[int, ForwardedBatch]] = deque()
        place = state.bases[partition] + topic.counts[partition]
        sent = 0
        for piece in source.pieces(topic.counts[partition]):
            if isinstance(piece, DamagedPiece):
                if not self._on_damaged(topic, partition, piece):
                    break
                continue
            size = len(piece.encoded)
            batch = producer.forward(state.name, partition, piece.header, piece.encoded)
            in_flight.append((place, batch))
            place += piece.header.record_count
            sent += size
            self._bar.done += size
            self._bar.size_bytes += size
            while in_flight and in_flight[0][1].is_done:
                _check(at, *in_flight.popleft())
            if sent >= _BUFFER_BYTES // _SENT_AT_ONCE:
                self.done.size_bytes += sent
                sent = 0
                yield
        self.done.size_bytes += sent
        while in_flight:
            expected, batch = in_flight.popleft()
            batch.wait(_DELIVERY_MS / 1000)
            _check(at, expected, batch)
        topic.counts[partition] = place - state.bases[partition]

    def _on_damaged(self, topic: _Topic, partition: int, piece: DamagedPiece) -> bool:
        """Whether to continue behind it."""
        named = f"{topic.saved.name}-{partition}: offsets {piece.begin} to {piece.end - 1}: {piece.what}"
        self.done.damaged.append(named)
        if not self._wish.skips_damaged:
            topic.is_whole = False
            self._problem(
                f"{named}. The records before are restored. `ottla backup DIR --repair` reads them anew if the source "
                "still has them, and then this restore continues; --skip-damaged continues without them"
            )
            return False
        self._problem(f"{named}; left out")
        topic.state.skipped.setdefault(str(partition), []).append((piece.begin, piece.end))
        self._save()
        return True

    # --- comparing ---

    def _compare(self, topics: list[_Topic]) -> None:
        for topic in topics:
            self.done.records += sum(topic.counts)
        waiting = [topic for topic in topics if topic.state.stage == SENDING and topic.is_whole]
        if not self._wish.compares:
            self._mark_compared(waiting)
            return
        lots = {}
        for topic in waiting:
            state = topic.state
            for partition, count in enumerate(topic.counts):
                done = min(state.compared[partition], count)
                source = self._saved_records(topic.saved, state, partition)
                lots[TopicPartition(state.name, partition)] = _Lot(
                    Comparing(source, done), topic, state.bases[partition] + done, state.bases[partition] + count
                )
        compare(self._cluster, lots, self._bar)
        for at, lot in lots.items():
            self.done.compared += lot.comparing.records
            if lot.comparing.difference is not None:
                lot.topic.is_whole = False
                self._problem(f"{at}: {lot.comparing.difference}")
        self._mark_compared(waiting)

    def _mark_compared(self, topics: list[_Topic]) -> None:
        for topic in topics:
            if topic.is_whole:
                topic.state.stage, topic.state.compared = COMPARED, list(topic.counts)
        self._save()

    # --- what comes last ---

    def _settle(self, admin: "Admin", topics: list[_Topic]) -> None:
        """Gives topics their own settings. From then on records may be deleted and compacted."""
        for topic in topics:
            if topic.state.stage != COMPARED:
                continue
            wanted = self._own_settings(topic.saved, topic.state)
            unset = dict.fromkeys((*WHILE_RESTORED, _MAX_MESSAGE))
            self._set(admin, topic.state.name, {**unset, **wanted})
            topic.state.given = wanted
            topic.state.stage = SETTLED
            self._save()

    def _own_settings(self, saved: SavedTopic, state: RestoredTopic) -> dict[str, str]:
        """Of a topic when it is restored."""
        before = state.before or {}
        wanted = {**saved.config, **before} if state.existed else {**before, **saved.config}
        for name, kept in before.items():
            if state.existed and saved.config.get(name, kept) != kept:
                self._say(
                    f"topic {state.name} was there before: it keeps its {name}={kept}; the back-up has "
                    f"{saved.config[name]}"
                )
        for name, default in state.defaults.items():
            at_source = saved.in_force.get(name, default)
            if name not in wanted and _deletes_more(name, default, at_source):
                wanted[name] = at_source
                self._say(
                    f"topic {state.name}: {name}={at_source} is set on the topic: it was in force at the source, and "
                    f"{default}, the default here, may delete what was restored"
                )
        return wanted

    def _set(self, admin: "Admin", name: str, wanted: Mapping[str, str | None]) -> None:
        from ottla.client.admin.configs import ConfigResource
        from ottla.client.errors import KafkaError

        resource = ConfigResource.topic(name)
        try:
            admin.incremental_alter_configs({resource: wanted}).raise_first()
            return
        except KafkaError as problem:
            if problem.retriable:
                raise
        for key, value in wanted.items():  # one of them is refused; the others are not to suffer
            for refusal in admin.incremental_alter_configs({resource: {key: value}}).errors.values():
                self._problem(f"topic {name}: setting {key}={value} is refused: {refusal}")

    def _restored_before(self, admin: "Admin") -> list[_Topic]:
        """Topics that an earlier restore has made: groups can be given their places there."""
        topics = []
        for saved in self._chosen():
            name = self._wish.names.get(saved.name, saved.name)
            state = self._state.topics.get(f"{saved.name}/{name}")
            if state is not None and state.topic_id is not None and state.run == self._run.number:
                topic = _Topic(saved, state, self._sources(saved, state))
                self._find_place(admin, topic)
                topics.append(topic)
        return topics

    def _restore_groups(self, admin: "Admin", topics: list[_Topic]) -> None:
        from ottla.client.errors import KafkaError

        by_name = {topic.saved.name: topic for topic in topics}
        wanted: dict[tuple[str, int], set[int]] = {}
        groups = [one for one in self._run.cluster["groups"] if self._wish.is_group_chosen(one["group"])]
        for group in groups:
            for topic, partition, offset, _ in group["offsets"]:
                if topic in by_name:
                    wanted.setdefault((topic, partition), set()).add(offset)
        places: dict[tuple[str, int, int], int] = {}
        for (name, partition), offsets in wanted.items():
            topic = by_name[name]
            if partition >= len(topic.sources):
                continue
            before = self._saved_records(topic.saved, topic.state, partition).counts_before(offsets)
            for offset, count in before.items():
                restored = min(count, topic.counts[partition])
                places[name, partition, offset] = topic.state.bases[partition] + restored
        for group in groups:
            offsets_of = {
                TopicPartition(by_name[topic].state.name, partition): (places[topic, partition, offset], metadata)
                for topic, partition, offset, metadata in group["offsets"]
                if (topic, partition, offset) in places
            }
            if not offsets_of:
                continue
            try:
                cluster_state.restore_group(admin, group["group"], group["type"], offsets_of)
                self.done.groups += 1
            except KafkaError as problem:
                self._problem(f"group {group['group']}: {problem}")

    def _restore_others(self, admin: "Admin") -> None:
        saved, wish, done = self._run.cluster, self._wish, self.done.others
        if ACLS in wish.parts and saved["acls"]:
            done[ACLS] = self._unless_refused(
                ACLS, lambda: cluster_state.restore_acls(admin, saved[ACLS], self._problem)
            )
        if QUOTAS in wish.parts and saved["quotas"]:
            done[QUOTAS] = self._unless_refused(
                QUOTAS, lambda: cluster_state.restore_quotas(admin, saved[QUOTAS], self._problem)
            )
        if SETTINGS in wish.parts and saved["settings"]:
            done[SETTINGS] = self._unless_refused(
                SETTINGS, lambda: cluster_state.restore_settings(admin, saved[SETTINGS], self._problem)
            )
        if USERS in wish.parts and saved["users"]:
            done[USERS] = self._unless_refused(USERS, lambda: self._restore_users(admin, saved[USERS]))

    def _unless_refused(self, what: str, restore: Callable[[], int]) -> int:
        from ottla.client.errors import KafkaError

        try:
            return restore()
        except KafkaError as problem:
            self._problem(f"{what}: {problem}")
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            self._problem(f"{what}: the list of run {self._run.number} is not what `ottla backup` writes: {problem!r}")
        return 0

    def _restore_users(self, admin: "Admin", users: list[dict[str, Any]]) -> int:
        count, without = cluster_state.restore_users(admin, users, self._wish.passwords, self._problem)
        if without:
            named = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")
            self._problem(
                f"{counted(len(without), 'user')} without a password: {named}. No back-up can have it: brokers tell "
                "nobody. Give passwords with --passwords FILE (user=password, a line each), or set them with "
                "kafka-configs"
            )
        return count


@dataclass(slots=True)
class _Lot:
    """A partition that is compared."""

    comparing: Comparing
    topic: _Topic
    begin: int
    end: int


def compare(cluster: "Cluster", lots: Mapping[TopicPartition, _Lot], bar: ProgressBar) -> None:
    """Reads the partitions, and holds them against the back-up."""
    from ottla.client.blocking.batch_reader import BatchRange, BatchReader, FailedRange

    bar.restart("compared", sum(lot.end - lot.begin for lot in lots.values()))
    settings = cluster.consumer_settings(
        client_id="ottla-restore",
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        max_partition_fetch_bytes=4 << 20,
        fetch_max_bytes=16 << 20,
    )
    with BatchReader(settings) as reader:
        reader.at_once = _COMPARED_AT_ONCE
        for at, lot in lots.items():
            reader.add(BatchRange(at, lot.begin, lot.end))
        last_s = monotonic()
        while reader.is_left:
            fetched = reader.next_batches(_LOOK_S)
            bar.show()
            if fetched is None:
                if monotonic() - last_s > _PATIENCE_S:
                    for one in reader.under_way:
                        lots[one.partition].comparing.difference = f"nothing came for {_PATIENCE_S:g} s"
                        reader.drop(one.partition)
                continue
            last_s = monotonic()
            if isinstance(fetched, FailedRange):
                lots[fetched.range.partition].comparing.difference = str(fetched.error)
                continue
            lot = lots[fetched.partition]
            bar.done += min(fetched.end, lot.end) - fetched.begin
            bar.size_bytes += len(fetched.data)
            lot.comparing.take(fetched.data, fetched.begin, min(lot.end, fetched.end), fetched.aborted)
            fetched.give_back()
            if lot.comparing.difference is not None:
                reader.drop(fetched.partition)
    for lot in lots.values():
        lot.comparing.finish()


_END: Final = object()


def _deletes_more(name: str, here: str, there: str) -> bool:
    """Whether a topic loses records with the first value that it keeps with the second."""
    if name == "cleanup.policy":
        return sorted(here.split(",")) != sorted(there.split(","))
    unlimited = 1 << 63
    kept, wanted = (unlimited if int(value) < 0 else int(value) for value in (here, there))
    return kept < wanted


def _check(at: TopicPartition, expected: int, batch: "ForwardedBatch") -> None:
    """Raises what is wrong with a batch that is settled: why it was not written, or that it is in another place."""
    if batch.error is not None:
        raise batch.error
    for written, count in batch.written():
        if written not in (expected, -1):
            raise CannotRestore(
                f"{at}: the record for offset {expected} was written at {written}: somebody else writes to {at.topic}. "
                "Stop them, delete the topic, and restore it again"
            )
        expected += count


def _once_known(ask: "Callable[[], Any]") -> Any:
    """The answer for a topic that was just made: a broker may be asked that has not heard of it yet."""
    from ottla.client.errors import LeaderNotAvailable, UnknownTopicOrPartition

    deadline_s = monotonic() + _KNOWN_WITHIN_S
    while True:
        try:
            return ask()
        except (UnknownTopicOrPartition, LeaderNotAvailable):
            if monotonic() > deadline_s:
                raise
            sleep(0.05)
