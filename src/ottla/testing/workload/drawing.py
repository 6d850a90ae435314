"""Draws a program from a seed: every codec, kind of producer, size, version and topic, in one mix.

Rules that keep it decidable what must be readable in the end:
- Every record has an identity in it (its number, in the value or, without a value, in a header): no two are equal.
- Whether a broker must refuse a batch is known when it is drawn.
- A request without acknowledgement (acks=0) has nothing to refuse, which would end its connection, and nothing for a
  compacted topic, where a record may be gone before its offset is known.
- Two batches of one request are for different partitions.
"""

from random import Random
from typing import Final

from ottla.records.columns import Header
from ottla.records.header import Compression
from ottla.testing.workload.plans import (
    ACKS_ALL,
    BatchPlan,
    LaneKind,
    LanePlan,
    Program,
    RecordPlan,
    RequestPlan,
    RoundPlan,
    TopicPlan,
)
from ottla.wire.errors import ErrorCode

MAX_MESSAGE_BYTES: Final = 8 << 20
"""What brokers of a program must take (`message.max.bytes`)."""

_SMALL_LIMIT: Final = 20_000
_CODECS: Final = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
_FIRST_ZSTD_VERSION: Final = 7
_VERSIONS: Final = {
    LaneKind.PLAIN: range(3, 14),
    LaneKind.IDEMPOTENT: range(3, 14),
    LaneKind.TRANSACTIONS_1: range(3, 12),
    LaneKind.TRANSACTIONS_2: range(12, 14),
}
# Every program has these beside each other; more are drawn.
_FIRST_KINDS: Final = (LaneKind.TRANSACTIONS_2, LaneKind.PLAIN, LaneKind.TRANSACTIONS_1, LaneKind.IDEMPOTENT)
_STEP_MS: Final = 250
_SEGMENT_MS: Final = "20000"
_KEYS: Final = 12
_NOISE: Final = Random(0).randbytes(1 << 20)
"""Bytes that do not compress; values are pieces of it, because drawing megabytes takes longer than sending them."""


def draw_program(
    seed: int, start_ms: int, *, budget_bytes: int = 24 << 20, most_rounds: int = 12, with_tls: bool = True
) -> Program:
    """The program of a seed. `start_ms` is the time of its first record: some hours ago, so that none is of the future.

    `budget_bytes` limits the sizes of all values together, before compression.
    """
    return _Drawing(seed, start_ms, budget_bytes, with_tls=with_tls).draw(most_rounds)


class _Drawing:
    def __init__(self, seed: int, start_ms: int, budget_bytes: int, *, with_tls: bool) -> None:
        self._seed = seed
        self._random = Random(f"workload {seed}")
        self._budget_bytes = budget_bytes
        self._time_ms = start_ms
        self._with_tls = with_tls
        self._records = 0
        self._batches = 0
        self._topics = self._draw_topics()

    def draw(self, most_rounds: int) -> Program:
        random = self._random
        kinds = [*_FIRST_KINDS, *random.choices(tuple(LaneKind), k=random.randint(2, 8))]
        lanes = [self._lane(f"lane-{number}", kind, most_rounds) for number, kind in enumerate(kinds)]
        lanes += [self._client_lane(f"client-{number}", most_rounds) for number in range(random.randint(1, 2))]
        return Program(self._seed, self._topics, tuple(lanes))

    # Topics

    def _draw_topics(self) -> tuple[TopicPlan, ...]:
        random = self._random
        rolled = {"segment.ms": _SEGMENT_MS}
        compacted = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "min.compaction.lag.ms": "0",
            **rolled,
        }
        stored = random.choice(("uncompressed", "gzip", "snappy", "lz4", "zstd"))
        other = random.choice(("uncompressed", "gzip", "snappy", "lz4", "zstd"))
        stamped = {"message.timestamp.type": "LogAppendTime"}
        settings: dict[str, dict[str, str]] = {
            "plain": {},
            "rolled": rolled,
            "stamped": stamped,
            "stored": {"compression.type": stored},
            "stamped-stored": {**stamped, "compression.type": other},
            "small": {"max.message.bytes": str(_SMALL_LIMIT)},
            "compacted": compacted,
        }
        return tuple(TopicPlan(name, random.randint(1, 3), given) for name, given in settings.items())

    # Lanes

    def _lane(self, name: str, kind: LaneKind, most_rounds: int) -> LanePlan:
        rounds = [self._round(kind) for _ in range(self._random.randint(2, most_rounds))]
        is_encrypted = self._with_tls and self._random.random() < 0.25
        return LanePlan(name, kind, is_encrypted, tuple(rounds))

    def _client_lane(self, name: str, most_rounds: int) -> LanePlan:
        """A producer of ours: rounds are its transactions, or what it sends between two flushes."""
        random = self._random
        codec = random.choice(_CODECS)
        kind = random.choice((LaneKind.PLAIN, LaneKind.IDEMPOTENT, LaneKind.TRANSACTIONS_2))
        rounds = []
        for _ in range(random.randint(2, most_rounds)):
            batches = [self._batch(topic, codec) for topic in random.choices(self._topics, k=random.randint(1, 5))]
            request = RequestPlan(tuple(batches), ACKS_ALL, 0)
            rounds.append(RoundPlan((request,), commits=random.random() < 0.8))
        is_encrypted = self._with_tls and random.random() < 0.25
        return LanePlan(name, kind, is_encrypted, tuple(rounds), client_codec=codec.name.lower())

    def _round(self, kind: LaneKind) -> RoundPlan:
        random = self._random
        requests = [self._request(kind) for _ in range(random.choice((1, 1, 1, 2, 3, 5)))]
        return RoundPlan(tuple(requests), commits=not kind.is_transactional or random.random() < 0.7)

    def _request(self, kind: LaneKind) -> RequestPlan:
        random = self._random
        version = random.choice(_VERSIONS[kind])
        acks = random.choice((ACKS_ALL, ACKS_ALL, 1) if kind.is_transactional else (ACKS_ALL, 1, 0))
        places = [(topic, index) for topic in self._topics for index in range(topic.partitions)]
        if acks == 0:
            places = [place for place in places if not place[0].is_compacted]
        codecs = [codec for codec in _CODECS if codec is not Compression.ZSTD or version >= _FIRST_ZSTD_VERSION]
        # A batch that takes long to check keeps waiting those that are beside it in its request.
        has_slow_one = random.random() < 0.15
        chosen = random.sample(places, 4 if has_slow_one else random.choice((1, 1, 2, 3, 6)))
        batches: list[BatchPlan] = []
        for topic, index in chosen:
            is_slow = has_slow_one and not batches and topic.name != "small"
            codec = random.choice(codecs[1:] if is_slow else codecs)
            batch = self._batch(topic, codec, index, expands=is_slow)
            if acks != 0 and not kind.is_transactional and random.random() < 0.05:
                batch = self._refused(batch)
            batches.append(batch)
        is_repeated = kind is not LaneKind.PLAIN and acks != 0 and random.random() < 0.15
        return RequestPlan(tuple(batches), acks, version, is_repeated)

    # Batches

    def _batch(
        self, topic: TopicPlan, codec: Compression, index: int | None = None, *, expands: bool = False
    ) -> BatchPlan:
        random = self._random
        index = random.randrange(topic.partitions) if index is None else index
        self._batches += 1
        sizes = [(random.randint(1_050_000, 1_400_000), True)] if expands else self._sizes(topic, codec)
        records = tuple(self._record(topic, size, compresses=compresses) for size, compresses in sizes)
        return BatchPlan(self._batches, topic, index, codec, records)

    def _refused(self, batch: BatchPlan) -> BatchPlan:
        """A batch for the same place that its broker must not take."""
        topic, index, codec = batch.topic, batch.partition, batch.codec
        if topic.name == "small":
            first = batch.records[0]
            value = self._records.to_bytes(4) + self._filling(3 * _SMALL_LIMIT, compresses=False)
            records: tuple[RecordPlan, ...] = (RecordPlan(first.timestamp, first.key, value),)
            return BatchPlan(batch.number, topic, index, codec, records, ErrorCode.MESSAGE_TOO_LARGE)
        if topic.is_compacted:
            records = tuple(RecordPlan(one.timestamp, None, one.value or b"", one.headers) for one in batch.records)
            return BatchPlan(batch.number, topic, index, codec, records, ErrorCode.INVALID_RECORD)
        return BatchPlan(
            batch.number, topic, index, codec, batch.records, ErrorCode.CORRUPT_MESSAGE, breaks_checksum=True
        )

    def _sizes(self, topic: TopicPlan, codec: Compression) -> list[tuple[int, bool]]:
        """For each record of a batch: how large its value is, and whether it compresses."""
        random = self._random
        left = self._budget_bytes
        kinds = ["tiny", "small", "small", "many", "medium"]
        if topic.name != "small":
            kinds += ["large"] * (left > 1 << 20)
            kinds += ["expanding"] * (2 * (codec is not Compression.NONE and left > 6 << 20))
            kinds += ["huge"] * (left > 10 << 20 and random.random() < 0.3)
        match random.choice(kinds):
            case "tiny":
                sizes = [(random.randint(0, 10), False)]
            case "small":
                sizes = [(random.randint(0, 300), random.random() < 0.5) for _ in range(random.randint(1, 12))]
            case "many":
                sizes = [(random.randint(0, 60), True) for _ in range(random.randint(20, 120))]
            case "medium":
                sizes = [(random.randint(500, 3_000), random.random() < 0.5) for _ in range(random.randint(1, 4))]
            case "large":
                sizes = [(random.randint(20_000, 400_000), random.random() < 0.3) for _ in range(random.randint(1, 2))]
            case "huge":
                sizes = [(random.randint(1 << 20, 5 << 20), False)]
            case _:
                sizes = [(random.randint(600_000, 1_300_000), True) for _ in range(random.randint(1, 4))]
        self._budget_bytes -= sum(size for size, _ in sizes)
        return sizes

    def _record(self, topic: TopicPlan, size: int, *, compresses: bool) -> RecordPlan:
        random = self._random
        self._records += 1
        self._time_ms += _STEP_MS
        identity = self._records.to_bytes(4)
        headers = tuple(self._header() for _ in range(random.choice((0, 0, 0, 1, 3))))
        timestamp = self._time_ms + random.randint(-2 * _STEP_MS, 2 * _STEP_MS)
        if topic.is_compacted:
            key: bytes | None = b"key-%d" % random.randrange(_KEYS)
        else:
            key = random.choice(
                (None, b"", b"key-%d" % random.randrange(_KEYS), random.randbytes(random.randint(1, 40)))
            )
        if random.random() < 0.06:
            return RecordPlan(timestamp, key, None, (*headers, ("identity", identity)))
        return RecordPlan(timestamp, key, identity + self._filling(size, compresses=compresses), headers)

    def _filling(self, size: int, *, compresses: bool) -> bytes:
        if compresses:
            return bytes([self._random.randrange(256)]) * size
        start = self._random.randrange(len(_NOISE))
        return (_NOISE[start : start + size] + _NOISE * (size // len(_NOISE) + 1))[:size] if size else b""

    def _header(self) -> Header:
        random = self._random
        name = random.choice(("", "h", "trace-id", "Ü-ñ-漢"))
        return name, None if random.random() < 0.2 else random.randbytes(random.randint(0, 24))
