"""The compiled kernel against its pure twin: on any bytes, the same results or the same error."""

import random
import struct
from contextlib import suppress

import pytest
from crc32c import crc32c

from ottla.records import _slow, fetched
from ottla.records.batch import HEADER_SIZE, LOG_OVERHEAD, CorruptBatch, assign, read_header
from ottla.records.builder import BatchBuilder, build_batch
from ottla.records.columns import BinaryColumn, HeaderColumn
from ottla.records.reader import read_records
from ottla.records.validate import InvalidBatch, ProduceRules, validate_produced

_fast = pytest.importorskip("ottla.records._fast", reason="this installation has no compiled kernel")

NOW = 1_700_000_000_000


def fields(record):
    return record.offset, record.timestamp, record.key, record.value, record.headers


def some_bytes(chance):
    kind = chance.random()
    if kind < 0.2:
        return None
    return chance.randbytes(chance.choice([0, 1, 5, 62, 63, 64, 65, 130]))


def some_records(chance):
    return [
        (
            chance.choice([-1, 0, NOW, NOW + chance.randrange(100_000), (1 << 62)]),
            some_bytes(chance),
            some_bytes(chance),
            [
                (chance.choice(["", "h", "clé", "k" * 70]), some_bytes(chance))
                for _ in range(chance.choice([0, 0, 0, 1, 2]))
            ],
        )
        for _ in range(chance.randrange(1, 6))
    ]


def mutated(chance, data):
    data = bytearray(data)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 4])):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
        elif kind == 2:
            del data[at : at + chance.choice([1, 2, 10])]
        elif kind == 3:
            data[at:at] = chance.choice(
                [b"\xff" * 5, b"\xff\xff\xff\xff\x0f", b"\x80" * 9 + b"\x01", chance.randbytes(3)]
            )
        else:
            del data[at:]
    return bytes(data)


def outcome(work):
    """What came out, with everything that came before an error."""
    seen = []
    try:
        seen.extend(work())
    except (CorruptBatch, ValueError) as error:
        seen.append((type(error), str(error)))
    except OverflowError:
        seen.append(OverflowError)  # the compiled kernel leaves the words to the interpreter
    return seen


def both(work):
    compiled, pure = (outcome(lambda kernel=kernel: work(kernel)) for kernel in (_fast, _slow))
    assert compiled == pure


def compare_reading(chance):
    writer = _fast.RecordWriter()
    records = some_records(chance)
    for record in records:
        writer.append(*record)
    data = mutated(chance, writer.finish())
    count = chance.choice([len(records)] * 6 + [0, 1, len(records) + 1, -1, 1 << 30])
    offset, timestamp = chance.choice([0, 7, (1 << 63) - 2]), chance.choice([0, NOW, -(1 << 63), (1 << 63) - 1])
    stamp = chance.choice([None, None, NOW])
    wanted = chance.choice([(), (2,), (8, 10), (0, (1 << 63) - 1)])

    def columns(kernel):
        reader = kernel.ColumnReader()
        reader.add(data, offset, timestamp, stamp, count, *wanted)
        reader.add(data, offset, timestamp, stamp, count, *wanted)
        return [reader.finish()]

    both(lambda kernel: map(fields, kernel.RecordReader(data, offset, timestamp, stamp, count)))
    both(lambda kernel: [kernel.scan(data, timestamp, count)])
    both(columns)


def compare_writing(chance):
    records = some_records(chance)
    reserved, limit = chance.choice([0, 61]), chance.choice([0, 0, 1, 100, 200])
    base = chance.choice([None, None, NOW, -1, -5])
    deltas = sorted(chance.sample(range(1 << 20), len(records))) if chance.random() < 0.3 else [None] * len(records)
    timestamps, keys, values, headers = map(list, zip(*records, strict=True))
    if chance.random() < 0.2:
        timestamps[-1] = chance.choice([-2, -(1 << 63), 1 << 63])

    def state(writer):
        return writer.size, writer.record_count, writer.base_timestamp, writer.max_timestamp, writer.last_offset_delta

    def append(kernel):
        writer = kernel.RecordWriter(reserved, limit, base)
        for row in zip(timestamps, keys, values, headers, deltas, strict=True):
            yield writer.append(*row), state(writer)
        yield writer.finish()

    def extend(kernel):
        writer = kernel.RecordWriter(reserved, limit, base)
        yield writer.extend(timestamps, keys, values, headers, begin=chance_begin), state(writer)
        yield writer.finish_batch(chance_begin, 3, 0) if as_batch else writer.finish()

    as_batch = chance.random() < 0.5
    chance_begin = chance.choice([0, 0, 1, len(records), len(records) + 3])
    both(append)
    both(extend)


def compare_columns(chance):
    """Columns that came from a reader, and the same with bytes of them changed."""
    reader = _slow.ColumnReader()
    records = some_records(chance)
    writer = _slow.RecordWriter()
    for record in records:
        writer.append(*record)
    reader.add(writer.finish(), 0, writer.base_timestamp, None, len(records))
    columns = reader.finish()

    def shaken(column):
        if column is None or chance.random() < 0.6:
            return column
        offsets = mutated(chance, column.offsets)
        validity = None if column.validity is None else mutated(chance, column.validity)
        return BinaryColumn(offsets, column.data, validity, column.null_count, chance.choice([0, 0, 1, -1]))

    key, value = shaken(columns.key), shaken(columns.value)
    headers = HeaderColumn(
        columns.headers.offsets if chance.random() < 0.7 else mutated(chance, columns.headers.offsets),
        shaken(columns.headers.keys),
        shaken(columns.headers.values),
        chance.choice([0, 0, 0, 1, -1]),
    )
    timestamps = b"".join(record[0].to_bytes(8, "little", signed=True) for record in records)
    begin, limit = chance.choice([0, 0, 1]), chance.choice([0, 200])
    end = len(records) + chance.choice([0, 0, 1])

    def extend(kernel):
        writer = kernel.RecordWriter(0, limit)
        yield writer.extend_columns(timestamps, chance_key, value, chance_headers, begin, end), writer.record_count
        yield writer.finish()

    chance_key, chance_headers = chance.choice([key, None]), chance.choice([headers, None])
    both(extend)


def compare_cleaning(chance):
    """Batches of few keys: a map learned from some of them, and what it leaves of others."""
    batches = []
    for _ in range(chance.randrange(1, 4)):
        writer = _fast.RecordWriter()
        records = some_records(chance)
        for timestamp, _, value, headers in records:
            writer.append(timestamp, chance.choice([None, b"", b"a", b"b", b"key of twenty bytes"]), value, headers)
        data = writer.finish()
        batches.append((mutated(chance, data) if chance.random() < 0.2 else bytes(data), len(records)))
    capacity = chance.choice([1, 2, 5])
    first, latest = chance.choice([0, 0, 2, 11]), chance.choice([None, None, 3, 14])
    has_horizon, stamp = chance.random() < 0.3, chance.choice([None, None, NOW])
    base = chance.choice([0, NOW, (1 << 63) - 1])
    reserved = chance.choice([0, 61, -1])

    def clean(kernel):
        offsets = kernel.OffsetMap(capacity + 1, capacity, b"sixteen bytes...")
        for number, (data, count) in enumerate(batches):
            yield offsets.learn(data, number * 10, count, first), len(offsets), offsets.latest_offset
        yield [offsets.get(key) for key in (b"", b"a", b"b", b"never seen")]
        offsets.latest_offset = offsets.latest_offset if latest is None else latest
        for number, (data, count) in enumerate(batches):
            flags = keep_tombstones, has_horizon
            yield offsets.retain(data, number * 10, base, stamp, count, *flags, NOW + 7, reserved)

    keep_tombstones = chance.random() < 0.5
    both(clean)


def compare_runs(chance):
    """Whole batches in a row: how far the quick ways go, and what they make of them."""
    window, offset = bytearray(), chance.choice([0, 7])
    for _ in range(chance.randrange(1, 6)):
        special = chance.random() < 0.2
        builder = BatchBuilder(
            compression=chance.choice([0, 0, 3]) if special else 0,
            base_offset=offset,
            producer_id=chance.choice([-1, 1, 2]),
            transactional=special and chance.random() < 0.5,
            delete_horizon_ms=NOW + 9 if special and chance.random() < 0.5 else None,
        )
        for timestamp, _, value, headers in some_records(chance):
            builder.append(timestamp, chance.choice([None, b"a", b"b", b"c"]), value, headers)
        offset += builder.last_offset_delta + 1 + chance.choice([0, 0, 3])
        window += builder.build()
    if chance.random() < 0.4:
        window = bytearray(mutated(chance, window))
        if chance.random() < 0.8:
            repair_checksums(window)  # So that the change is looked at.
    window = bytes(window[: len(window) - chance.choice([0, 0, 5])])
    capacity, first, latest = chance.choice([1, 3, 50]), chance.choice([0, 0, 5]), chance.choice([None, None, 6])
    next_offset, limit = chance.choice([0, 0, 8]), chance.choice([1 << 40, 12])
    needed = {-1: chance.randrange(20), 1: chance.randrange(20), 2: chance.randrange(20)}

    def run(kernel):
        offsets, out = kernel.OffsetMap(capacity, capacity, b"sixteen bytes..."), bytearray(b"before")
        yield offsets.learn_run(window, first, next_offset, limit), len(offsets), offsets.latest_offset
        yield [offsets.get(key) for key in (b"", b"a", b"b", b"c")]
        offsets.latest_offset = offsets.latest_offset if latest is None else latest
        yield offsets.retain_run(window, next_offset, limit, needed, out), bytes(out)

    both(run)


def repair_checksums(window):
    """Of the batches that are whole."""
    at = 0
    while len(window) - at >= HEADER_SIZE:
        size = LOG_OVERHEAD + struct.unpack_from(">i", window, at + 8)[0]
        if not HEADER_SIZE <= size <= len(window) - at:
            return
        struct.pack_into(">I", window, at + 17, crc32c(window[at + 21 : at + size]))
        at += size


def compare_fetched(chance):
    """What a fetch brings, its last batch cut off, damaged, or so short that it is none."""
    data, offset = bytearray(), 0
    for _ in range(chance.randrange(1, 4)):
        timestamps, keys, values, headers = map(list, zip(*some_records(chance), strict=True))
        batch = build_batch(timestamps, keys, values, headers, compression=chance.choice([0, 0, 0, 1, 4]))
        assign(batch, 0, offset, 3)
        offset += len(keys)
        data += batch
    if chance.random() < 0.7:
        data = bytearray(mutated(chance, data))
        if chance.random() < 0.8:
            repair_checksums(data)
    if chance.random() < 0.2:
        data += struct.pack(">qii", offset, chance.choice([3, 4, 5, 60, -1]), 3) + chance.randbytes(chance.randrange(9))
    first, check_crcs = chance.choice([0, 1, 3]), chance.random() < 0.6

    def take(kernel):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetched, "FetchedRecords", kernel.FetchedRecords)
            records = fetched.fetched_records("orders", 0, bytes(data), first, check_crcs=check_crcs)
        yield records.end_offset, records.end_epoch, records.next_batch_bytes
        out = []
        while True:
            count = len(out)
            records.take(out, 3)
            yield [fields(record) for record in out[count:]], records.next_offset, records.bytes_left
            if len(out) == count:
                return

    both(take)


COMPARISONS = [
    compare_reading,
    compare_writing,
    compare_columns,
    compare_cleaning,
    compare_runs,
    compare_fetched,
]


@pytest.mark.parametrize("compare", COMPARISONS)
def test_twins_agree(compare):
    for seed in range(20_000):
        compare(random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("compare", COMPARISONS)
def test_twins_agree_in_the_long_run(compare):
    for seed in range(20_000, 400_000):
        compare(random.Random(seed))


RULES = (
    ProduceRules(),
    ProduceRules(compacted=True),
    ProduceRules(timestamp_before_max_ms=50_000, timestamp_after_max_ms=50_000),
    ProduceRules(max_message_bytes=150),
    ProduceRules(timestamp_after_max_ms=(1 << 63) - 1),
)


def short_cut(chance):
    """A batch that is taken as it is by the short cut is taken as it is by the long way too."""
    timestamps, keys, values, headers = map(list, zip(*some_records(chance), strict=True))
    if chance.random() < 0.7:
        timestamps = [NOW + chance.randrange(-60_000, 60_000) for _ in timestamps]
    data = bytearray(build_batch(timestamps, keys, values, headers, compression=chance.choice([0, 0, 0, 2])))
    if chance.random() < 0.5:
        data = bytearray(mutated(chance, data))
        if len(data) > 61 and chance.random() < 0.8:
            struct.pack_into(">i", data, 8, len(data) - 12)
            struct.pack_into(">I", data, 17, crc32c(data[21:]))
    rules = chance.choice(RULES)
    plain = _fast.PlainBatches(
        rules.max_message_bytes, rules.timestamp_before_max_ms, rules.timestamp_after_max_ms, rules.compacted
    )
    header = plain.header_of(data, NOW)
    if header is None or not _fast.is_sound(data, header.crc):
        return False
    before = bytes(data)
    # A buffer that cannot be written to goes the long way.
    taken = validate_produced(before, rules, NOW)
    assert (bytes(taken.to_append(before)), taken.header, taken.converted) == (before, header, False)
    assert read_header(data) == header
    assert data == before
    return True


def test_the_short_cut_takes_what_the_long_way_takes():
    taken = sum(short_cut(random.Random(seed)) for seed in range(10_000))
    assert taken > 1000


@pytest.mark.long
def test_the_short_cut_takes_what_the_long_way_takes_in_the_long_run():
    for seed in range(10_000, 200_000):
        short_cut(random.Random(seed))


def whole_batch(chance):
    """A changed batch, through everything that opens batches: an answer or a typed error, and nothing else."""
    timestamps, keys, values, headers = map(list, zip(*some_records(chance), strict=True))
    batch = build_batch(timestamps, keys, values, headers, compression=chance.randrange(5))
    data = bytearray(mutated(chance, batch))
    if len(data) > 61 and chance.random() < 0.8:
        # A length and a checksum that are right let the change through to what is looked at after them.
        struct.pack_into(">i", data, 8, len(data) - 12)
        data[16] = chance.choice([0, 1, 2, 2, 2, 2])
        struct.pack_into(">I", data, 17, crc32c(data[21:]))
    with suppress(CorruptBatch):
        read_header(data)
        for _ in read_records(data, limit=1 << 20):
            pass
    with suppress(InvalidBatch):
        validate_produced(data, ProduceRules(), NOW, decompressed_limit=1 << 20)


def test_any_bytes_are_a_batch_or_a_typed_error():
    for seed in range(20_000):
        whole_batch(random.Random(seed))


@pytest.mark.long
def test_any_bytes_are_a_batch_or_a_typed_error_in_the_long_run():
    for seed in range(20_000, 400_000):
        whole_batch(random.Random(seed))
