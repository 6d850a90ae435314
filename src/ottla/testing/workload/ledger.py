"""What became of each batch that was sent, and so what must be readable: held against what readers have seen.

A batch that was acknowledged is at the offset that its reply named, for ever, record by record as it was sent. One
without acknowledgement (acks=0) that a node has handled is somewhere, once, in the order of its connection: the first
reader that sees it places it. One that was refused, or whose transaction was aborted, is seen by nobody who asks for
committed records. What no lane has sent is seen by nobody. A compacted topic may have lost a record only to a later one
of the same key.

Where nodes are killed, what was sent without acks=all may be gone, and what a plain producer had no answer for may be
there or not, until every replica was read (`settle`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.records.columns import Header
from ottla.testing.workload.plans import BatchPlan, LanePlan, RecordPlan

_MOST_SHOWN: Final = 40


class Fate(Enum):
    OPEN = "sent, and nothing is known of it"
    UNANSWERED = "handled without an acknowledgement"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class Ending(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class SentTransaction:
    """`places` are the partitions that its coordinator knows: each gets a marker."""

    __slots__ = ("ending", "places")

    def __init__(self) -> None:
        self.ending = Ending.OPEN
        self.places: set[TopicPartition] = set()


class SentBatch:
    __slots__ = ("append_time_ms", "base_offset", "fate", "lane", "may_be_lost", "plan", "transaction", "was_seen")

    def __init__(self, lane: LanePlan, plan: BatchPlan, transaction: SentTransaction | None) -> None:
        self.lane = lane
        self.plan = plan
        self.transaction = transaction
        self.fate = Fate.OPEN
        self.base_offset = -1
        self.may_be_lost = False
        """Its leader may have died before a follower had it: it was not sent with acks=all."""
        self.was_seen = False
        self.append_time_ms = -1
        """What a topic with LogAppendTime has stamped its records with, where that is known."""

    def __str__(self) -> str:
        plan = self.plan
        ending = "" if self.transaction is None else f", transaction {self.transaction.ending.value}"
        return (
            f"batch {plan.number} of {self.lane.name} ({self.lane.kind.value}, {plan.codec.name.lower()}, "
            f"{len(plan.records)} records for {plan.place} at offset {self.base_offset}, {self.fate.value}{ending})"
        )

    @property
    def must_be_there(self) -> bool:
        return self.fate in (Fate.ACKNOWLEDGED, Fate.UNANSWERED) and not self.may_be_lost

    @property
    def must_be_committed(self) -> bool:
        is_done = self.transaction is None or self.transaction.ending is Ending.COMMITTED
        return self.must_be_there and is_done

    @property
    def may_be_committed(self) -> bool:
        is_undone = self.transaction is not None and self.transaction.ending is Ending.ABORTED
        return self.fate is not Fate.REFUSED and not is_undone

    @property
    def is_committed(self) -> bool:
        """As far as anybody knows."""
        return self.must_be_committed or (self.was_seen and self.may_be_committed)


class SeenRecord(NamedTuple):
    """One that a reader was shown. `timestamp` is in milliseconds."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Ledger:
    """`note` every batch before it is sent, then say what became of it. `differences` is what must not be."""

    def __init__(self) -> None:
        self.sent: list[SentBatch] = []
        self.transactions: list[SentTransaction] = []
        self.differences: list[str] = []
        self._by_identity: dict[int, tuple[SentBatch, int]] = {}

    # Sending

    def note(self, lane: LanePlan, plan: BatchPlan, transaction: SentTransaction | None = None) -> SentBatch:
        sent = SentBatch(lane, plan, transaction)
        for index, record in enumerate(plan.records):
            self._by_identity[_identity(record.value, record.headers)] = sent, index
        self.sent.append(sent)
        return sent

    def begin(self) -> SentTransaction:
        transaction = SentTransaction()
        self.transactions.append(transaction)
        return transaction

    def acknowledge(self, sent: SentBatch, base_offset: int, append_time_ms: int) -> None:
        if sent.fate is Fate.ACKNOWLEDGED and base_offset != sent.base_offset:
            self.tell(f"a repetition was acknowledged with offset {base_offset}: {sent}")
        sent.fate = Fate.ACKNOWLEDGED
        sent.base_offset = base_offset
        if sent.plan.topic.is_stamped and append_time_ms >= 0:
            sent.append_time_ms = append_time_ms

    def tell(self, difference: str) -> None:
        """Something that must not be. After many, no more are kept."""
        if len(self.differences) < _MOST_SHOWN:
            self.differences.append(difference)

    # Reading

    def compare(
        self, reader: str, place: TopicPartition, seen: Iterable[SeenRecord], *, committed_only: bool
    ) -> Counter[str]:
        """Holds what a reader has seen of a whole partition against what was sent. Returns counts, for the report."""
        numbers: set[int] = set()
        before = -1
        for record in seen:
            if record.offset <= before:
                self.tell(f"{reader}: {place} offset {record.offset} comes after offset {before}")
            before = record.offset
            number = _identity(record.value, record.headers)
            found = self._by_identity.get(number)
            if found is None:
                self.tell(f"{reader}: {place} offset {record.offset} was never sent: {_short(record.value)}")
            elif number in numbers:
                self.tell(f"{reader}: {place} offset {record.offset} is there twice: {found[0]}")
            else:
                numbers.add(number)
                self._compare_record(reader, place, record, *found, committed_only=committed_only)
        gone = self._tell_missing(reader, place, numbers, committed_only=committed_only)
        return Counter(records=len(numbers), gone=gone)

    def _compare_record(
        self,
        reader: str,
        place: TopicPartition,
        seen: SeenRecord,
        sent: SentBatch,
        index: int,
        *,
        committed_only: bool,
    ) -> None:
        plan = sent.plan
        where = f"{reader}: {place} offset {seen.offset}"
        sent.was_seen = True
        if sent.base_offset < 0:
            sent.base_offset = seen.offset - index  # nobody was told: this reader is the first to see it
        if plan.place != place or seen.offset != sent.base_offset + index:
            self.tell(f"{where} is not its place: {sent}, record {index}")
        if sent.fate is Fate.REFUSED:
            self.tell(f"{where} was refused: {sent}")
        elif committed_only and not sent.may_be_committed:
            self.tell(f"{where} is not committed: {sent}")
        planned = plan.records[index]
        for name, found, expected in _fields(seen, planned, self._timestamp(sent, planned, seen)):
            if found != expected:
                self.tell(f"{where} has {name} {_short(found)} instead of {_short(expected)}: {sent}, record {index}")

    def _timestamp(self, sent: SentBatch, planned: RecordPlan, seen: SeenRecord) -> int:
        if not sent.plan.topic.is_stamped:
            return planned.timestamp
        if sent.append_time_ms < 0:
            sent.append_time_ms = seen.timestamp  # nobody was told
        return sent.append_time_ms

    def _tell_missing(self, reader: str, place: TopicPartition, numbers: set[int], *, committed_only: bool) -> int:
        """Returns how many records compaction has removed."""
        here = [sent for sent in self.sent if sent.plan.place == place]
        last_of_key: dict[bytes | None, int] = {}
        if here and here[0].plan.topic.is_compacted:
            for offset, record in _committed_records(here):
                last_of_key[record.key] = max(offset, last_of_key.get(record.key, -1))
        gone = 0
        for sent in here:
            if not (sent.must_be_committed if committed_only else sent.must_be_there):
                continue
            for index, record in enumerate(sent.plan.records):
                if _identity(record.value, record.headers) in numbers:
                    continue
                offset = sent.base_offset + index
                if offset < last_of_key.get(record.key, -1) or (last_of_key and not sent.must_be_committed):
                    gone += 1
                else:
                    self.tell(f"{reader}: {place} offset {offset} is missing: {sent}, record {index}")
        return gone

    def settle(self) -> None:
        """Nothing is on its way any more, and every replica was read: what was there stays, and nothing is added."""
        for sent in self.sent:
            if sent.fate is not Fate.OPEN and not sent.may_be_lost:
                continue
            if sent.was_seen:
                sent.fate, sent.may_be_lost = Fate.UNANSWERED, False
            elif not sent.plan.topic.is_compacted:  # there it may be gone already
                sent.fate = Fate.REFUSED

    def check_orders(self) -> None:
        """What a connection sent to a partition is there in that order."""
        last: dict[tuple[str, TopicPartition], SentBatch] = {}
        for sent in self.sent:
            if sent.base_offset < 0 or not sent.must_be_there:
                continue
            key = sent.lane.name, sent.plan.place
            before = last.get(key)
            if before is not None and before.base_offset >= sent.base_offset:
                self.tell(f"out of order: {sent} comes before {before}")
            last[key] = sent

    def check_gaps(
        self, place: TopicPartition, offsets: Sequence[int], end_offset: int, *, has_kills: bool = False
    ) -> None:
        """Offsets without a record are those of markers, one for each transaction that had this partition.

        A coordinator that did not hear of a marker before it, or its leader, was killed, writes it again.
        """
        touched = [one for one in self.transactions if place in one.places and one.ending is not Ending.OPEN]
        written = {
            id(sent.transaction)
            for sent in self.sent
            if sent.transaction is not None and sent.plan.place == place and sent.must_be_there
        }
        least = sum(1 for one in touched if id(one) in written)
        gaps = end_offset - len(offsets)
        if gaps < least or (gaps > len(touched) and not (has_kills and touched)):
            self.tell(f"{place}: {gaps} offsets up to {end_offset} have no record, and {least} transactions ended here")

    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for sent in self.sent:
            found[f"batches {sent.fate.name.lower()}"] += 1
            found[f"batches {sent.lane.kind.name.lower()}"] += 1
            found["records"] += len(sent.plan.records)
            found["bytes"] += sum(len(record.value or b"") for record in sent.plan.records)
        for transaction in self.transactions:
            found[f"transactions {transaction.ending.name.lower()}"] += 1
        return found


def _committed_records(sent: Iterable[SentBatch]) -> Iterator[tuple[int, RecordPlan]]:
    for one in sent:
        if one.is_committed:
            for index, record in enumerate(one.plan.records):
                yield one.base_offset + index, record


def _fields(seen: SeenRecord, planned: RecordPlan, timestamp: int) -> Iterator[tuple[str, object, object]]:
    yield "timestamp", seen.timestamp, timestamp
    yield "key", seen.key, planned.key
    yield "value", seen.value, planned.value
    yield "headers", seen.headers, planned.headers


def _identity(value: bytes | None, headers: Sequence[Header]) -> int:
    """The number of a record, of which there is one in all of a program; -1 where there is none."""
    if value is not None:
        return int.from_bytes(value[:4]) if len(value) >= 4 else -1
    return next((int.from_bytes(text) for name, text in headers if name == "identity" and text), -1)


def _short(found: object) -> str:
    text = repr(found[:60] if isinstance(found, bytes) else found)
    return f"{text}… ({len(found)} bytes)" if isinstance(found, bytes) and len(found) > 60 else text[:200]
