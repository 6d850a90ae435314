"""A model: whatever clients, timeouts and restarts do, every transaction ends once, and in one way.

The partition's side of the protocol is modelled too: a batch is taken if its partition was added to the transaction
in the batch's epoch, and every marker that is due is written at last.
"""

from random import Random

import pytest

from ottla.machines.transaction.states import AT_REST, PREPARED
from ottla.wire.errors import ErrorCode
from tests.unit.machines.transaction.transaction_coordinators import NEW, OLD, T0, T1, Coordinator

SEEDS = range(40)


class History:
    """`ends` are the ends that were promised to clients; `marked` those that partitions have been told of."""

    def __init__(self, seed: int, version: int) -> None:
        self.random = Random(seed)
        self.version = version
        self.coordinator = Coordinator(transaction_version=version, max_timeout_ms=3_000, id_expiration_ms=50_000)
        self.producer: tuple[int, int] | None = None
        self.zombies: list[tuple[int, int]] = []
        self.promised: dict[tuple[int, int], bool] = {}
        self.marked: dict[tuple[int, int], bool] = {}

    def step(self) -> None:
        self.coordinator.now_ms += self.random.randrange(900)
        weighted = [self.init, self.add, self.add, self.end, self.end, self.write, self.write, self.time, self.zombie]
        self.random.choice([*weighted, self.coordinator.restart])()

    def init(self) -> None:
        has = self.producer if self.random.random() < 0.5 else None
        reply = self.coordinator.init(timeout_ms=3_000, has=has)
        if reply.error is ErrorCode.NONE:
            if self.producer is not None and (reply.producer_id, reply.producer_epoch) != self.producer:
                self.zombies.append(self.producer)
            self.producer = reply.producer_id, reply.producer_epoch
        elif reply.error is ErrorCode.PRODUCER_FENCED:
            self.producer = None

    def add(self) -> None:
        if self.producer is not None:
            self.coordinator.add(self.producer, self.random.choice([T0, T1]), version=self.version)

    def end(self) -> None:
        if self.producer is None:
            return
        committed = self.random.random() < 0.5
        error, producer_id, epoch = self.coordinator.end(self.producer, committed, self.version)
        if error == "NONE" and self.version == NEW:
            self.promise(self.producer, committed)
            self.zombies.append(self.producer)
            self.producer = producer_id, epoch

    def promise(self, producer: tuple[int, int], committed: bool) -> None:
        assert self.promised.setdefault(producer, committed) == committed, "two answers to one question"

    def write(self) -> None:
        for end in self.coordinator.write_markers():
            if self.version == NEW:
                key = end.producer_id, end.producer_epoch
                assert self.marked.setdefault(key, end.committed) == end.committed, "two ends of one transaction"

    def time(self) -> None:
        self.coordinator.fire(self.random.choice(["abort_timed_out", "expire_ids"]))

    def zombie(self) -> None:
        """Somebody who was fenced, or a request that is late, changes nothing."""
        if not self.zombies:
            return
        before = dict(self.coordinator.machine.transactions)
        producer = self.random.choice(self.zombies)
        if producer == self.producer:
            return
        assert self.coordinator.add(producer, T0, version=self.version) != "NONE"
        self.coordinator.end(producer, self.random.random() < 0.5, self.version)
        assert self.coordinator.machine.transactions == before

    def settle(self) -> None:
        """Clients go away; the coordinator is left alone, and everything ends."""
        self.coordinator.restart()
        self.coordinator.now_ms += 3_001
        self.coordinator.fire("abort_timed_out")
        self.write()
        assert all(one.state in AT_REST for one in self.coordinator.machine.transactions.values())
        for (producer_id, epoch), committed in self.promised.items():
            assert self.marked.get((producer_id, epoch + 1)) == committed
        self.coordinator.now_ms += 50_001
        self.coordinator.fire("expire_ids")
        assert not self.coordinator.machine.transactions


@pytest.mark.slow
@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_transaction_ends_once_and_as_it_was_promised(seed: int, version: int) -> None:
    history = History(seed, version)
    for _ in range(120):
        history.step()
        told = {end.transactional_id for end in history.coordinator.markers.told}
        prepared = {name for name, one in history.coordinator.machine.transactions.items() if one.state in PREPARED}
        assert prepared <= told, "whoever writes markers knows of every end that is decided"
    history.settle()
