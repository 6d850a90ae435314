"""The digest by which a replayed batch is known to have the rows that were decided. Both twins take every test."""

from random import Random
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from ottla.records.arrow import HEADERS_TYPE, binary_column, header_column
from ottla.spark.sink import _slow_digest, digest
from ottla.spark.sink.rows import Routing

SIZES = [*range(40), 63, 64, 65, 255, 1000, 70_000]


@pytest.fixture(params=["compiled", "pure"])
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return _slow_digest if request.param == "pure" else pytest.importorskip("ottla.spark.sink._fast_digest")


def digest_of(twin: ModuleType, *columns: list[bytes | None] | None, headers: Any = None) -> int:
    given = [None if one is None else binary_column(pa.array(one, pa.binary())) for one in columns]
    count = max(len(one) for one in columns if one is not None)
    found: int = twin.rows_digest(
        count, given, None if headers is None else header_column(pa.array(headers, HEADERS_TYPE))
    )
    return found


def test_twins_agree_on_every_size_of_a_cell() -> None:
    fast = pytest.importorskip("ottla.spark.sink._fast_digest")
    chance = Random(7)
    cells = [chance.randbytes(size) for size in SIZES]
    for cell in cells:
        assert digest_of(fast, [cell]) == digest_of(_slow_digest, [cell])
    headers = [[("a", b"1"), ("b", None)][: number % 3] for number in range(len(cells))]
    columns = [cells, None, [None if number % 5 == 0 else cell for number, cell in enumerate(reversed(cells))]]
    assert digest_of(fast, *columns, headers=headers) == digest_of(_slow_digest, *columns, headers=headers)


def test_one_cell_is_hashed_as_published(twin: ModuleType) -> None:
    """XXH64 of nothing with seed 0, by the specification."""
    assert digest_of(twin, [b""]) == 0xEF46DB3751D8E999


def test_the_order_of_rows_does_not_matter_and_neither_do_pieces(twin: ModuleType) -> None:
    keys: list[bytes | None] = [b"a", b"b", None, b"a"]
    values: list[bytes | None] = [b"1", b"2", b"3", b"1"]
    whole = digest_of(twin, keys, values)
    assert whole == digest_of(twin, keys[::-1], values[::-1])
    assert whole == (digest_of(twin, keys[:1], values[:1]) + digest_of(twin, keys[1:], values[1:])) % (1 << 64)


@pytest.mark.parametrize(
    "other",
    [
        {"key": [b"a", b"b"], "value": [b"2", b"1"]},
        {"key": [b"b", b"a"], "value": [b"1", b"2"]},
        {"key": [b"a1", b"b"], "value": [b"", b"2"]},
        {"key": [b"", b"b"], "value": [b"a1", b"2"]},
        {"key": [None, b"b"], "value": [b"a1", b"2"]},
        {"key": [b"a", b"b"], "value": [None, b"2"]},
        {"key": [b"a", b"b"], "value": [b"", b"2"]},
        {"key": [b"a", b"b"], "value": [b"1", b"2"], "headers": [[("h", b"")], []]},
        {"key": [b"a", b"b"], "value": [b"1", b"2"], "headers": [[("h", None)], []]},
        {"key": [b"a", b"b"], "value": [b"1", b"2"], "headers": [[("h", None), ("h", None)], []]},
        {"key": [b"a", b"a"], "value": [b"1", b"1"]},
    ],
)
def test_other_rows_have_another_digest(twin: ModuleType, other: dict[str, Any]) -> None:
    seen = digest_of(twin, other["key"], other["value"], headers=other.get("headers"))
    assert seen != digest_of(twin, [b"a", b"b"], [b"1", b"2"])


def test_slices_are_their_own_rows_only(twin: ModuleType) -> None:
    values = pa.array([b"0", None, b"2", b"3"], pa.binary())
    headers = pa.array([[("a", b"")], [], [("b", b"x"), ("c", None)], []], HEADERS_TYPE)
    sliced = twin.rows_digest(2, [binary_column(values.slice(1, 2))], header_column(headers.slice(1, 2)))
    assert sliced == digest_of(twin, [None, b"2"], headers=[[], [("b", b"x"), ("c", None)]])


def test_columns_that_are_not_there_are_refused(twin: ModuleType) -> None:
    column = binary_column(pa.array([b"a"], pa.binary()))
    with pytest.raises(ValueError, match="no row 1"):
        twin.rows_digest(2, [column], None)


def of(routing: Routing, **columns: Any) -> int:
    return routing.digest(pa.record_batch(columns))


def test_text_and_bytes_of_any_size_are_the_same_row() -> None:
    routing = Routing(("key", "value"), "t")
    seen = {
        of(routing, key=pa.array(["k", None], kind), value=pa.array(["é", "v"], kind))
        for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    }
    assert len(seen) == 1


def test_what_decides_where_a_row_goes_counts_and_what_is_passed_over_does_not() -> None:
    values = pa.array(["v"])
    columns = ("value", "topic", "partition", "offset")
    given = {"value": values, "topic": pa.array(["a"]), "partition": pa.array([1], pa.int32()), "offset": pa.array([5])}
    routing = Routing(columns, None)
    base = of(routing, **given)
    assert of(routing, **given | {"topic": pa.array(["b"])}) != base
    assert of(routing, **given | {"partition": pa.array([2], pa.int32())}) != base
    assert of(routing, **given | {"partition": pa.array([None], pa.int32())}) != base
    assert of(routing, **given | {"offset": pa.array([6])}) == base
    to_one = Routing(columns, "t")
    assert of(to_one, **given | {"topic": pa.array(["b"])}) == of(to_one, **given)


def test_headers_with_nulls_are_those_that_are_written() -> None:
    routing = Routing(("value", "headers"), "t")
    values = pa.array(["v", "w"])
    with_nulls = pa.array([None, [None, {"key": "a", "value": b"1"}]], pa.list_(HEADERS_TYPE.value_type))
    plain = pa.array([[], [("a", b"1")]], HEADERS_TYPE)
    assert of(routing, value=values, headers=with_nulls) == of(routing, value=values, headers=plain)


def test_digested_rows_pass_as_they_are() -> None:
    batches = [pa.record_batch({"value": pa.array([str(number)] * number)}) for number in (1, 0, 3)]
    rows = digest.DigestedRows(Routing(("value",), "t"), batches)
    assert list(rows) == batches
    assert rows.digest.row_count == 4
    assert rows.digest.total == of(Routing(("value",), "t"), value=pa.array(["3", "1", "3", "3"]))
