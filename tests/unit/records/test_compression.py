import tracemalloc
import zlib
from time import process_time

import cramjam
import lz4.frame
import pytest

from ottla.records import lz4_frame, xerial
from ottla.records.batch import Compression, CorruptBatch
from ottla.records.compression import LEVELS, DecompressionBomb, compress, decompress

CODECS = [codec for codec in Compression if codec]
TEXT = b"".join(b"line %d of a text that repeats itself; " % number for number in range(10_000))
SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "text": TEXT,
    "noise": bytes(zlib.crc32(b"%d" % n) & 0xFF for n in range(99_999)),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_what_was_compressed_comes_back(codec, data):
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.slow
@pytest.mark.parametrize("codec", LEVELS)
def test_every_level_can_be_read_and_the_highest_is_no_larger_than_the_lowest(codec):
    levels = [level for level in LEVELS[codec] if level > -8 or level == LEVELS[codec].start]
    sizes = []
    for level in levels:
        compressed = compress(codec, memoryview(TEXT)[:100_000], level)
        assert bytes(decompress(codec, compressed)) == TEXT[:100_000]
        sizes.append(len(compressed))
    assert sizes[-1] <= sizes[0]


@pytest.mark.parametrize(("codec", "level"), [(1, 0), (1, 10), (2, 1), (3, 0), (3, 18), (4, 23)])
def test_a_level_that_kafka_does_not_have_is_refused(codec, level):
    with pytest.raises(ValueError, match="no compression level"):
        compress(codec, b"", level)


@pytest.mark.parametrize("codec", CODECS)
def test_a_limit_is_exact(codec):
    compressed = compress(codec, TEXT)
    assert bytes(decompress(codec, compressed, len(TEXT))) == TEXT
    with pytest.raises(DecompressionBomb):
        decompress(codec, compressed, len(TEXT) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_before_it_takes_memory(codec):
    bomb = bytes(compress(codec, bytes(64 << 20)))
    tracemalloc.start()
    with pytest.raises(DecompressionBomb):
        decompress(codec, bomb, 1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The list of an lz4 or snappy bomb's blocks is as long as the bomb itself; nothing is as large as its content.
    assert peak < (4 << 20) + 40 * len(bomb) // 100


def test_a_zstd_frame_that_does_not_say_its_size_is_bounded_by_its_blocks():
    compressor = cramjam.zstd.Compressor()
    compressor.compress(bytes(8 << 20))
    frame = bytes(compressor.finish())
    assert len(decompress(Compression.ZSTD, frame, 8 << 20)) == 8 << 20
    with pytest.raises(DecompressionBomb):
        decompress(Compression.ZSTD, frame, (8 << 20) - 1)


def test_a_size_that_lies_is_not_believed():
    block = bytearray(xerial.compress(b"x" * 100, 0))
    block[20] = 0x7F  # the first block says it expands to 127 bytes
    with pytest.raises(CorruptBatch):
        decompress(Compression.SNAPPY, block)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"\x01", b"nothing of the kind", b"\xff" * 40])
def test_bytes_of_no_codec_are_corrupt(codec, data):
    with pytest.raises(CorruptBatch):
        decompress(codec, data)


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_is_noticed_wherever_it_is(codec):
    whole = bytes(compress(codec, b"some records " * 20))
    for end in range(len(whole)):
        try:
            short = decompress(codec, whole[:end])
        except CorruptBatch:
            continue
        assert len(short) < 260, end  # an xerial stream may end after any block


def test_a_codec_that_does_not_exist_is_corrupt():
    with pytest.raises(CorruptBatch, match="number 6"):
        decompress(6, b"")


def test_snappy_without_xerials_framing_is_read():
    assert bytes(decompress(Compression.SNAPPY, cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_blocks_are_32_kb_behind_their_lengths():
    framed = xerial.compress(bytes(40_000), 0)
    assert framed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")
    first = int.from_bytes(framed[16:20], "big")
    assert len(cramjam.snappy.decompress_raw(framed[20 : 20 + first])) == 32 * 1024


def test_lz4_frames_are_headed_as_java_heads_them():
    frame = lz4_frame.compress(b"x" * 100, lz4_frame.FAST_LEVEL)
    assert frame[:7] == bytes.fromhex("04224d18 60 40 82")  # 64 KB independent blocks, no content size, checksum
    assert frame[-4:] == bytes(4)


def test_lz4_stores_what_it_cannot_shrink():
    noise = SAMPLES["noise"][:1000]
    frame = lz4_frame.compress(bytes(cramjam.zstd.compress(noise)), lz4_frame.FAST_LEVEL)
    assert frame[10] & 0x80


def test_lz4_blocks_that_depend_on_each_other_are_refused_as_java_refuses_them():
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=True)
    compressor.compress(TEXT)
    with pytest.raises(CorruptBatch, match="depend on each other"):
        decompress(Compression.LZ4, compressor.finish())


def test_lz4_headers_are_held_against_their_checksum_but_not_in_the_oldest_format():
    frame = bytearray(lz4_frame.compress(b"hello", lz4_frame.FAST_LEVEL))
    frame[6] ^= 0xFF
    with pytest.raises(CorruptBatch, match="checksum"):
        decompress(Compression.LZ4, frame)
    assert lz4_frame.decompress(memoryview(frame), 100, check_header=False) == b"hello"


@pytest.mark.parametrize("size_code", [4, 5, 6, 7])
@pytest.mark.parametrize("store_size", [False, True])
def test_lz4_headers_of_the_lz4_library_match_their_checksum(size_code, store_size):
    """Its descriptors have 2 bytes, or 10 with the size of the content."""
    data = b"hello " * 100
    frame = lz4.frame.compress(data, block_size=size_code, store_size=store_size, block_linked=False)
    assert decompress(Compression.LZ4, frame) == data
    for position in range(6, 15 if store_size else 7):
        broken = frame[:position] + bytes([frame[position] ^ 1]) + frame[position + 1 :]
        with pytest.raises(CorruptBatch, match="checksum"):
            decompress(Compression.LZ4, broken)


def test_gzip_members_follow_each_other_and_end_where_the_next_is_none():
    two = bytes(compress(Compression.GZIP, b"one ")) + bytes(compress(Compression.GZIP, b"two"))
    assert decompress(Compression.GZIP, two + b"junk") == b"one two"


def test_many_small_gzip_members_take_time_in_proportion_to_their_number():
    """zlib copies what it does not use of its input: given all of it, each member would copy the rest of the batch."""
    member = bytes(compress(Compression.GZIP, b"x"))
    started_s = process_time()
    assert decompress(Compression.GZIP, member * 5_000) == b"x" * 5_000
    few_s = process_time() - started_s
    started_s = process_time()
    assert decompress(Compression.GZIP, member * 50_000) == b"x" * 50_000
    assert process_time() - started_s < 30 * few_s


@pytest.mark.parametrize("codec", CODECS)
def test_small_pieces_count_for_more_than_is_in_them(codec):
    """What is tried with a small limit is tried where there is no time for thousands of them."""
    one = {
        Compression.GZIP: (b"", bytes(compress(Compression.GZIP, b"x")), b""),
        Compression.SNAPPY: (xerial.compress(b"", 0), xerial.compress(b"x", 0)[16:], b""),
        Compression.LZ4: (bytes.fromhex("04224d18604082"), bytes.fromhex("0100008078"), bytes(4)),
        Compression.ZSTD: (b"", bytes(compress(Compression.ZSTD, b"x")), b""),
    }[codec]
    first, piece, last = one
    with pytest.raises(DecompressionBomb):
        decompress(codec, first + piece * 2_000 + last, 1 << 20)
    assert bytes(decompress(codec, first + piece * 2_000 + last)) == b"x" * 2_000
    assert bytes(decompress(codec, first + piece * 200 + last, 1 << 20)) == b"x" * 200


@pytest.mark.parametrize("codec", CODECS)
def test_a_limit_of_just_what_is_there_is_enough(codec):
    for data in (b"x", b"x" * 1024, TEXT):
        assert bytes(decompress(codec, compress(codec, data), len(data))) == data


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (5 << 20) + 17])
def test_large_data_comes_back_whatever_it_is_put_into(codec, size):
    for data in (bytes(size), (TEXT * 20)[:size]):
        found = decompress(codec, compress(codec, data), size)
        assert found == data


def test_gzip_is_what_every_reader_knows():
    assert zlib.decompress(compress(Compression.GZIP, TEXT), 31) == TEXT
