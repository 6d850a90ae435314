"""What a node leaves behind for the next one: groups with members, transactions that are over, and open ones.

`LeftBehind(bootstrap, who)` makes it all, in a topic of its own; `found_by` finds it at another node with the same
data, goes on with it, and ends everything that is open. The transactions are each made in both protocols (KIP-890):

    done        one committed, one aborted
    commits     open; its producer goes on, and commits
    fenced      open; another producer of the same transactional id comes instead
    forgotten   open; nobody comes, and the coordinator aborts it

Each open one has records in two partitions. Those that are `commits` and `fenced` also have an offset of a group with
them: in the older protocol of the classic group, in the newer one of the consumer group.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeTransactionsRequest
from tests.interop.group_scenes import Talk, fetch
from tests.interop.groups.consumers_of_groups import SILENCE_S, ClassicMembers, ConsumerMember
from tests.interop.groups.raw_producer import NEW, OLD, RawProducer, until

LEAVES: dict[str, object] = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3_600_000,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 1000,
}
"""Settings of a node that is about to be left: it does not look for transactions that have timed out."""

FINDS: dict[str, object] = {
    **LEAVES,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "group.consumer.session.timeout.ms": SILENCE_S * 1000,
}
"""Settings of a node that takes over."""

VERSIONS = OLD, NEW
READ_WITHIN_S = 30.0
_IDLE_S = 0.2


class LeftBehind:
    """See the module."""

    def __init__(self, bootstrap: str, who: str) -> None:
        self.who = who
        self.topic = f"orders-{who}"
        self.group_ids = f"classic-{who}", f"consumer-{who}"
        self.committed: list[str] = []
        talk = Talk(bootstrap)
        talk.create_topics(**{self.topic: 2})
        self._make_groups(talk)
        self._make_transactions(bootstrap)
        self.classic.bob_beats(talk)
        talk.close()

    def _make_groups(self, talk: Talk) -> None:
        classic_id, consumer_id = self.group_ids
        for group_id in self.group_ids:
            talk.find_coordinator(group_id)
        self.classic = ClassicMembers(talk, classic_id, self.topic)
        self.cid = ConsumerMember("cid", consumer_id, self.topic)
        self.dora = ConsumerMember("dora", consumer_id, self.topic)
        until(lambda: self._share(talk), bool)
        self.cid.commit(talk)

    def _share(self, talk: Talk) -> bool:
        for member in (self.cid, self.dora):
            member.beat(talk)
        return sorted([self.cid.partitions, self.dora.partitions]) == [[0], [1]] and self.cid.epoch == self.dora.epoch

    def _make_transactions(self, bootstrap: str) -> None:
        for done in self._producers(bootstrap, "done"):
            self._write(done, "committed")
            done.end(committed=True)
            self.committed.append(f"{done.transactional_id} committed")
            self._write(done, "aborted")
            done.end(committed=False)
            done.close()
        self.commits = self._producers(bootstrap, "commits")
        self.fenced = self._producers(bootstrap, "fenced")
        self.forgotten = self._producers(bootstrap, "forgotten", timeout_ms=1000)
        for producer in (*self.commits, *self.fenced, *self.forgotten):
            self._write(producer, "open")
        for group_id, commits, fenced in zip(self.group_ids, self.commits, self.fenced, strict=True):
            commits.commit_offset(group_id, self.topic, 0, 5)
            fenced.commit_offset(group_id, self.topic, 1, 9)

    def _producers(self, bootstrap: str, fate: str, timeout_ms: int = 600_000) -> list[RawProducer]:
        made = [RawProducer(bootstrap, f"{self.who}-{one}-{fate}", one, timeout_ms=timeout_ms) for one in VERSIONS]
        for producer in made:
            producer.init()
        return made

    def _write(self, producer: RawProducer, what: str) -> None:
        for index in (0, 1):
            producer.write(self.topic, index, f"{producer.transactional_id} {what}".encode())

    # At the next node

    def found_by(self, bootstrap: str) -> None:
        """All is there as it was left; and goes on from there."""
        talk = Talk(bootstrap)
        for group_id in self.group_ids:
            talk.find_coordinator(group_id)
        self.classic.are_still_there(talk)
        assert self.cid.partitions != self.dora.partitions
        before = self.cid.epoch, self.cid.partitions
        self.cid.beat(talk)
        assert (self.cid.epoch, self.cid.partitions) == before
        self.is_read_at(bootstrap)
        for group_id in self.group_ids:
            assert self._offsets(talk, group_id) == [1, 1]
            assert self._offsets(talk, group_id, require_stable=True) == ["UNSTABLE_OFFSET_COMMIT"] * 2
        self._transactions_end(talk, bootstrap)
        for group_id in self.group_ids:
            assert self._offsets(talk, group_id, require_stable=True) == [5, 1]
        self.is_read_at(bootstrap)
        until(lambda: self._the_silent_are_missed(talk), bool)
        self.classic.rejoin(talk)
        talk.close()

    def _transactions_end(self, talk: Talk, bootstrap: str) -> None:
        until(lambda: {self._state(talk, one) for one in self.forgotten}, lambda states: states == {"CompleteAbort"})
        for producer in self.commits:
            producer.move_to(bootstrap)
            assert self._state(talk, producer) == "Ongoing"
            self._write(producer, "later")
            producer.end(committed=True)
        self.committed += [f"{one.transactional_id} open" for one in self.commits]
        self.committed += [f"{one.transactional_id} later" for one in self.commits]
        for zombie in self.fenced:
            assert self._state(talk, zombie) == "Ongoing"
            newcomer = RawProducer(bootstrap, zombie.transactional_id, zombie.version)
            newcomer.init()
            zombie.move_to(bootstrap)
            assert zombie.end_error(committed=True) is ErrorCode.PRODUCER_FENCED
            self._resume(newcomer)
        for producer in self.commits:
            self._resume(producer)
        ended = [*self.commits, *self.fenced]
        until(lambda: {self._state(talk, one) for one in ended}, lambda states: states == {"CompleteCommit"})

    def _resume(self, producer: RawProducer) -> None:
        """One more transaction."""
        self._write(producer, "next")
        producer.end(committed=True)
        self.committed.append(f"{producer.transactional_id} next")

    def _the_silent_are_missed(self, talk: Talk) -> bool:
        time.sleep(_IDLE_S)
        self.cid.beat(talk)
        return self.classic.beat(talk) is ErrorCode.REBALANCE_IN_PROGRESS and self.cid.partitions == [0, 1]

    # Looking

    @staticmethod
    def _state(talk: Talk, producer: RawProducer) -> str:
        request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
        (described,) = talk.ask(request, 0).transaction_states
        return str(described.transaction_state)

    def _offsets(self, talk: Talk, group_id: str, *, require_stable: bool = False) -> list[int | str]:
        """Of both partitions, or why they are not told."""
        request = fetch(group_id, **{self.topic: (0, 1)})
        request.require_stable = require_stable
        (group,) = talk.ask(request, 8).groups
        assert group.error_code == ErrorCode.NONE, group
        return [
            ErrorCode(one.error_code).name if one.error_code else one.committed_offset
            for one in sorted(group.topics[0].partitions, key=lambda one: one.partition_index)
        ]

    def is_read_at(self, bootstrap: str) -> None:
        """A consumer that reads what is committed finds just that, in order, up to the end of each partition."""
        for index in (0, 1):
            read = list(self._read(bootstrap, index))
            assert read == self.committed, f"partition {index}: {read} instead of {self.committed}"

    def _read(self, bootstrap: str, index: int) -> Iterator[str]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        try:
            consumer.assign([TopicPartition(self.topic, index, 0)])
            while True:
                message = consumer.poll(READ_WITHIN_S)
                assert message is not None, "neither a record nor the end came"
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return
                yield message.value().decode()
        finally:
            consumer.close()
