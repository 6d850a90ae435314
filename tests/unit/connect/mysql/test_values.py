"""Values of the log and of queries, sets of GTIDs, and the queries of chunks."""

import random
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pytest

from ottla.connect.connectors.mysql import binlog, chunks, json_binary, rows
from ottla.connect.connectors.mysql.catalogue import ColumnFacts, Kind, TableFacts, column_of
from ottla.connect.connectors.mysql.gtids import MariaDbGtids, MySqlGtids
from ottla.connect.connectors.postgres.pgoutput import Sent
from ottla.connect.data.rows import stored_bytes
from ottla.connect.errors import ConnectError


def values(items: list[bytes | None]) -> rows.Values:
    """A column of these bytes, one behind the other."""
    sizes = [len(item or b"") for item in items]
    starts = np.cumsum([0, *sizes])[:-1]
    data = np.frombuffer(b"".join(item or b"" for item in items) + bytes(64), dtype=np.uint8)
    return rows.Values(data, starts.astype(np.int64), np.array(sizes), np.array([item is None for item in items]))


def packed(number: int, precision: int, scale: int) -> bytes:
    """A decimal as the log has it, of its unscaled number, made digit by digit."""
    digits = str(abs(number)).rjust(precision, "0")
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    groups = [whole[: len(whole) % 9], *[whole[at : at + 9] for at in range(len(whole) % 9, len(whole), 9)]]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    size = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    raw = bytearray(b"".join(int(group).to_bytes(size[len(group)], "big") for group in groups if group))
    raw[0] ^= 0x80
    return bytes(byte ^ 0xFF for byte in raw) if number < 0 else bytes(raw)


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 0), (5, 5), (9, 0), (10, 2), (18, 9), (19, 4), (38, 20), (65, 30)]
)
def test_decimals_of_the_log(precision: int, scale: int) -> None:
    chance = random.Random(precision)
    numbers = [0, 1, -1, 10**precision - 1, 1 - 10**precision]
    numbers += [chance.randrange(1 - 10**precision, 10**precision) for _ in range(50)]
    items: list[bytes | None] = [packed(one, precision, scale) for one in numbers]
    found = rows.decimals(precision, scale)(values([*items, None]))
    assert found.to_pylist() == [*map(stored_bytes, numbers), None]


def test_times_of_the_log() -> None:
    def packed_time(us: int, digits: int) -> bytes:
        more = (digits + 1) // 2
        seconds, fraction = divmod(abs(us), 1_000_000)
        clock = seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60
        number = clock << 8 * more | fraction // (1, 10_000, 100, 1)[more]
        return ((-number if us < 0 else number) + (1 << (23 + 8 * more))).to_bytes(3 + more, "big")

    for digits, step in ((0, 1_000_000), (2, 10_000), (4, 100), (6, 1)):
        chance = random.Random(digits)
        spans = [
            0,
            step,
            -step,
            838 * 3_600_000_000,
            *(chance.randrange(-(10**12), 10**12) // step * step for _ in range(50)),
        ]
        assert rows.times(digits)(values([packed_time(us, digits) for us in spans])).to_pylist() == spans


def test_numbers_of_three_bytes_have_a_sign_or_none() -> None:
    items: list[bytes | None] = [b"\xff\xff\xff", b"\0\0\x80", b"\1\0\0", None]
    assert rows.integers(3, unsigned=False)(values(items)).to_pylist() == [-1, -8388608, 1, None]
    assert rows.integers(3, unsigned=True)(values(items)).to_pylist() == [0xFFFFFF, 0x800000, 1, None]


def test_rows_of_many_events_are_walked_at_once_and_keep_their_order() -> None:
    columns = [
        binlog.MapColumn(binlog.LONG, 0, False),
        binlog.MapColumn(binlog.VARCHAR, 300, True),
        binlog.MapColumn(binlog.TINY, 0, True),
    ]
    chance = random.Random(5)
    expected: list[tuple[int, str | None, int | None]] = []
    parts: list[rows.Part] = []
    for _ in range(40):
        content = b"head"
        for _ in range(chance.randrange(1, 9)):
            text = None if chance.random() < 0.3 else "x" * chance.randrange(300)
            tiny = None if chance.random() < 0.3 else chance.randrange(-128, 128)
            number = len(expected)
            content += bytes([(text is None) << 1 | (tiny is None) << 2]) + struct.pack("<i", number)
            content += b"" if text is None else struct.pack("<H", len(text)) + text.encode()
            content += b"" if tiny is None else struct.pack("<b", tiny)
            expected.append((number, text, tiny))
        parts.append(rows.Part(content, 4, binlog.INSERT))
    images = rows.split(parts, columns)
    first, second, third = images.columns
    read = zip(
        rows.integers(4, unsigned=False)(first).to_pylist(),
        rows.texts("utf-8")(second).to_pylist(),
        rows.integers(1, unsigned=False)(third).to_pylist(),
        strict=True,
    )
    assert list(read) == expected
    with pytest.raises(binlog.Damaged):
        rows.split([rows.Part(parts[0].data[:-1], 4, binlog.INSERT)], columns)


def test_rows_of_a_query_are_split_into_columns() -> None:
    def lenenc(value: bytes | None) -> bytes:
        if value is None:
            return b"\xfb"
        if len(value) < 251:
            return bytes([len(value)]) + value
        if len(value) < 1 << 16:
            return b"\xfc" + struct.pack("<H", len(value)) + value
        return b"\xfd" + struct.pack("<I", len(value))[:3] + value

    table = [(b"1", None), (b"", b"x" * 250), (b"y" * 251, b"z" * 70_000), (None, None)]
    found = chunks.text_columns([lenenc(one) + lenenc(other) for one, other in table], 2)
    assert list(zip(*(column.to_pylist() for column in found), strict=True)) == table
    assert [len(column) for column in chunks.text_columns([], 2)] == [0, 0]


# --- GTIDs ---


def test_mariadbs_gtids_keep_the_last_of_each_domain() -> None:
    found = MariaDbGtids("1-3-7,0-1-5,0-2-9")
    assert str(found) == "0-2-9,1-3-7"
    found.add("0-1-10")
    assert str(found) == "0-1-10,1-3-7"


def test_mysqls_gtids_are_intervals() -> None:
    one, other = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "ae11fa47-71ca-11e1-9e33-c80aa9429562"
    found = MySqlGtids(f"{one}:1-3:5,\n{other}:7")
    found.add(f"{one}:4")
    found.add(f"{other}:8")
    assert str(found) == f"{one}:1-5,{other}:7-8"
    assert f"{one}:5" in found
    assert f"{other}:6" not in found
    assert found.holds(MySqlGtids(f"{one}:2-3")) and not found.holds(MySqlGtids(f"{one}:6"))  # noqa: PT018
    encoded = MySqlGtids(f"{one}:1-5").encoded()
    assert struct.unpack("<Q", encoded[:8]) == (1,)
    assert struct.unpack("<QQQ", encoded[24:]) == (1, 1, 6)


# --- MySQL's JSON: bytes as its manual has them ---


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("0401", "true"),
        ("0400", "null"),
        ("05ffff", "-1"),
        ("0c03616263", '"abc"'),
        # {"a": 1}: one entry, 12 bytes; the key at 11, of one byte; the number itself
        ("00" + "0100" + "0c00" + "0b00" + "0100" + "05" + "0100" + "61", '{"a":1}'),
        # [1, "x"]
        ("02" + "0200" + "0c00" + "05" + "0100" + "0c" + "0a00" + "0178", '[1,"x"]'),
        ("0f" + "f6" + "04" + "0302" + "8119", "1.25"),
    ],
)
def test_binary_json(raw: str, text: str) -> None:
    assert json_binary.text_of(bytes.fromhex(raw)) == text


# --- chunks ---


def table(**kinds: str) -> TableFacts:
    columns = tuple(ColumnFacts(name, Kind(kind)) for name, kind in kinds.items())
    return TableFacts("shop", "t`x", columns, tuple(kinds), True)


def test_the_query_of_a_chunk_uses_the_index() -> None:
    facts = table(a="int", b="varchar")
    assert chunks.chunk_sql(facts, ("5", "x'y"), 10) == (
        "SELECT `a`, `b` FROM `shop`.`t``x` WHERE `a` >= 5 AND ((`a` > 5) OR (`a` = 5 AND `b` > _utf8mb4 x'782779')) "
        "ORDER BY `a`, `b` LIMIT 10"
    )
    assert chunks.chunk_sql(table(f="float"), None, None) == "SELECT `f` + 0e0 FROM `shop`.`t``x`"


def test_a_key_from_an_offset_cannot_be_anything_but_a_value() -> None:
    with pytest.raises(ConnectError, match="no number"):
        chunks.chunk_sql(table(a="int"), ("1 OR 1=1",), 10)
    with pytest.raises(ConnectError, match="key of 2 columns"):
        chunks.chunk_sql(table(a="int"), ("1", "2"), 10)


def test_keys_whose_order_is_not_their_comparison_are_not_chunked() -> None:
    assert chunks.can_be_chunked(table(a="bigint", b="varbinary"))
    for kind in ("enum", "set", "float", "double", "bit"):
        assert not chunks.can_be_chunked(table(a="int", b=kind))


def test_columns_of_the_catalogue() -> None:
    def column(*row: Any) -> ColumnFacts:
        return column_of(("c", *row), "t", is_mariadb=True)

    found = column("enum", "enum('a','it''s','b,c')", "YES", None, 4, None, None, None, "utf8mb4", "")
    assert found.kind.labels == ("a", "it's", "b,c")
    found = column("bigint", "bigint(20) unsigned", "NO", None, None, 20, 0, None, None, "")
    assert (found.kind.unsigned, found.required) == (True, True)
    with pytest.raises(ConnectError, match="utf8mb4"):
        column("char", "char(1)", "NO", None, 1, None, None, None, "armscii8", "")


def test_an_unsigned_number_keeps_its_bits() -> None:
    from ottla.connect.connectors.mysql.types import _wrapped

    assert _wrapped(pa.array([1, 2**64 - 1, None], pa.uint64())).to_pylist() == [1, -1, None]


def test_a_set_with_tags_is_known_by_them() -> None:
    one = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    assert not MySqlGtids.has_tags(f"{one}:1-3:5,\n{one}:7")
    assert not MySqlGtids.has_tags("")
    assert MySqlGtids.has_tags(f"{one}:1-3:nightly:1-2")


def test_the_last_gtid_of_a_domain_is_the_last_of_the_log() -> None:
    """Without `gtid_strict_mode` numbers need not grow. By an older one the server would send again what came since."""
    found = MariaDbGtids("0-1-90,0-1-100")
    found.add("0-2-50")
    assert str(found) == "0-2-50"
    assert str(MariaDbGtids("0-2-100,0-1-90")) == "0-2-100"


def test_all_bytes_of_latin1_are_characters_as_a_query_gives_them() -> None:
    """Five of them cp1252 does not have; UTF-8 that was stored as latin1 is full of them."""
    content = bytes([0x41, 0x81, 0x8D, 0x8F, 0x90, 0x9D, 0x80, 0xE9])
    column = values([content])
    assert rows.texts("cp1252")(column).to_pylist() == ["A\x81\x8d\x8f\x90\x9d\u20acé"]


def touched_key(touched: chunks.Touched, table: str, key: bytes) -> None:
    """As a change of a row with this key."""
    sent = [Sent(pa.array([key], pa.binary()), None)]
    shape = SimpleNamespace(facts=TableFacts("shop", table, (), ("id",), True), key_places=lambda: [0])
    touched.add(shape, SimpleNamespace(before=None, after=sent))  # type: ignore[arg-type]


def test_a_change_of_a_table_whose_chunks_come_later_is_remembered_where_it_may_not_show_yet() -> None:
    """MySQL sends a transaction before others see it: the first chunk of the next table may have the older row."""
    touched = chunks.Touched(chunks.KEPT_S)
    touched.begin("shop.one", (1, 100))
    touched_key(touched, "two", b"7")
    touched.begin("shop.two", (1, 200))
    keys = pa.array([b"6", b"7"], pa.binary())
    assert touched.kept(keys).to_pylist() == [True, False]
    touched.begin("shop.one", (1, 300))
    assert touched.kept(keys) is None


def test_mariadb_which_says_what_a_chunk_shows_needs_the_keys_of_its_own_table() -> None:
    touched = chunks.Touched()
    touched.begin("shop.one", (1, 100))
    touched_key(touched, "two", b"7")
    touched.begin("shop.two", (1, 200))
    assert touched.since == (1, 200)
    assert touched.kept(pa.array([b"7"], pa.binary())) is None
