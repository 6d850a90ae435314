"""Random turns of commands, with disks that fill up and leaders that change: what is told is in the log, and once."""

from random import Random

import pytest

from ottla.machines.coordinator_machine import TransactionStamp
from ottla.records.batch import batches
from ottla.records.control import EndTransactionMarker
from ottla.records.reader import read_records
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetCommitValue
from ottla.wire.record_values import decode_versioned
from tests.unit.broker.coordination.numbers_bench import Bench, Told, of_two_replicas
from tests.unit.broker.coordination.test_gathering import FullDisk, Turns

LEADER, FOLLOWER = 1, 2


class History:
    """One run. `told` has every command that was asked for, with the name and the number that it puts."""

    def __init__(self, seed: int, disk: FullDisk) -> None:
        self.random = Random(seed)
        self.bench = Bench(max_message_bytes="400", **of_two_replicas())
        self.turns = Turns(self.bench)
        self.disk = disk
        self.told: list[tuple[str, int, Told]] = []
        self.markers: list[Told] = []

    def put(self, *, size: int = 0, transaction: TransactionStamp | None = None) -> None:
        random = self.random
        name = random.choice("abcde") * (size or 1)
        number = len(self.told) + 1
        told = Told()
        self.told.append((name, number, told))

        def then(reply: object) -> None:
            told.then(reply)
            if random.random() < 0.2:
                self.put()

        self.bench.coordinator.submit(
            name,
            lambda machine, now_ms: machine.put(name, number, transaction=transaction),
            then,
            told.failed,
        )

    def end_transaction(self, stamp: TransactionStamp) -> None:
        told = Told()
        self.markers.append(told)
        marker = EndTransactionMarker(self.random.random() < 0.5, 0)
        self.bench.coordinator.partitions[0].end_transaction(stamp, marker, told.then, told.failed)

    def step(self) -> None:
        random, bench = self.random, self.bench
        match random.choices(
            ["put", "large", "too large", "transaction", "marker", "turn", "full", "room", "leader", "replicate"],
            [30, 6, 2, 5, 4, 20, 2, 6, 1, 10],
        )[0]:
            case "put":
                self.put()
            case "large":
                self.put(size=random.randrange(50, 150))
            case "too large":
                self.put(size=500)
            case "transaction":
                self.put(transaction=TransactionStamp(random.randrange(3), 0))
            case "marker":
                self.end_transaction(TransactionStamp(random.randrange(3), 0))
            case "turn":
                self.turns.end()
            case "full":
                self.disk.is_full = True
            case "room":
                self.disk.is_full = False
                bench.node.timers.advance(1000)
            case "leader":
                bench.node.change_partition("numbers", leader=LEADER)
                bench.on_leadership()
            case "replicate":
                self.replicate()

    def replicate(self) -> None:
        partition = self.bench.partition
        if partition.state.on_fetched(FOLLOWER, partition.log.log_end_offset, 0, 0):
            partition.log.advance_high_watermark(partition.state.high_watermark)
        self.bench.node.broker.partitions.purgatory.wake(partition)

    def settle(self) -> None:
        """Everybody who can be told is."""
        self.disk.is_full = False
        for _ in range(100):
            self.turns.end()
            self.replicate()
            if all(told.replies or told.errors for _, _, told in self.told):
                return
        pytest.fail("somebody waits for ever")


def numbers_in_the_log(bench: Bench) -> list[int]:
    log = bench.partition.log
    data = log.read(0, 1 << 20, log.log_end_offset).read()
    return [
        decode_versioned(OffsetCommitValue, record.value).offset
        for position, header in batches(data)
        if not header.is_control
        for record in read_records(data, position, header)
        if record.value is not None
    ]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_told_is_in_the_log_and_the_machine_is_what_the_log_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    disk.is_full = False
    history = History(seed, disk)
    for _ in range(150):
        history.step()
    history.settle()
    bench = history.bench
    for _, _, told in history.told:
        assert len(told.replies) + len(told.errors) == 1, "told once"
    for told in history.markers:
        assert len(told.replies) + len(told.errors) == 1
    assert sum(bool(told.replies) for _, _, told in history.told) > 10
    assert ErrorCode.MESSAGE_TOO_LARGE in {error for _, _, told in history.told for error in told.errors} or seed
    written = numbers_in_the_log(bench)
    assert len(written) == len(set(written)), "written once"
    assert {number for _, number, told in history.told if told.replies} <= set(written), "what is told is in the log"
    live = bench.made[-1]
    loaded = bench.restarted().made[0]
    assert (live.numbers, live.open) == (loaded.numbers, loaded.open)
