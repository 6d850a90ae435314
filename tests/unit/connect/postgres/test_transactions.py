"""`provide.transaction.metadata`: begins, ends, and the place of each change, also where a transaction is cut."""

import random
from typing import Any

import pytest

from ottla.connect.connectors.postgres.changes import Changes
from ottla.connect.connectors.postgres.offsets import resumed
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import rows_of
from tests.unit.connect.postgres.pgoutput_messages import (
    begin,
    commit,
    delete,
    insert,
    logical_message,
    relation,
    update,
)
from tests.unit.connect.postgres.test_streaming import T_COLUMNS, T, U, stream

RELATIONS = [relation(T, "public", "t", T_COLUMNS), relation(U, "public", "u", T_COLUMNS)]


def shown(changes: Changes) -> list[Any]:
    """Marks as (status, id, count, collections), changes as (operation, transaction), by position."""
    found: list[tuple[int, Any]] = []
    for records in changes.take(0):
        if not isinstance(records.value, Column):
            continue
        for row, value in enumerate(rows_of(records.value)):
            if "status" in value:
                assert isinstance(records.key, Column)
                assert rows_of(records.key)[row] == {"id": value["id"]}
                listed = value["data_collections"]
                pairs = None if listed is None else {one["data_collection"]: one["event_count"] for one in listed}
                what: Any = (value["status"], value["id"], value["event_count"], pairs)
            else:
                block = value["transaction"]
                what = (value["op"], block and tuple(block.values()))
            found.append((records.position[row].as_py(), what))
    return [one[1] for one in sorted(found, key=lambda one: one[0])]


def test_changes_are_numbered_in_their_transaction_and_in_their_table() -> None:
    changes = stream(provide_transaction_metadata="true")
    for message in (
        *RELATIONS, begin(100, 150, 7), insert(101, T, [1, "a"]), insert(102, U, [1, "a"]),
        update(103, T, [2, "b"], [1, None]), logical_message(104, "p", b"", transactional=False),
        delete(105, U, [1, None]), logical_message(106, "q", b"", transactional=True), commit(150, 158),
        begin(160, 170, 8), commit(170, 178),
    ):  # fmt: skip
        changes.add(message)
    assert shown(changes) == [
        ("BEGIN", "7:100", None, None),
        ("c", ("7:101", 1, 1)),
        ("c", ("7:102", 2, 1)),
        ("d", ("7:103", 3, 2)),
        ("c", ("7:103", 4, 3)),
        ("m", None),
        ("d", ("7:105", 5, 2)),
        ("m", ("7:106", 6, 1)),
        ("END", "7:158", 6, {"public.t": 3, "public.u": 2, "message": 1}),
        ("BEGIN", "8:160", None, None),
        ("END", "8:178", 0, {}),
    ]


def test_changes_that_are_skipped_are_not_counted() -> None:
    changes = stream(provide_transaction_metadata="true", skipped_operations="c")
    for message in (
        *RELATIONS,
        begin(100, 150, 7),
        insert(101, T, [1, "a"]),
        update(102, T, [1, "b"]),
        commit(150, 158),
    ):
        changes.add(message)
    assert shown(changes)[1:] == [("u", ("7:102", 1, 1)), ("END", "7:158", 1, {"public.t": 1})]


@pytest.mark.parametrize("seed", range(60))
def test_a_crash_repeats_no_mark_and_no_number(seed: int) -> None:
    chance = random.Random(seed)
    messages: list[bytes] = []
    lsn = 100
    for xid in range(7, 12):
        size = chance.randrange(6)
        final = lsn + size + 2
        messages.append(begin(lsn + 1, final, xid))
        for number in range(size):
            made = insert(lsn + 2 + number, chance.choice([T, U]), [number, "x"])
            messages.append(made)
        messages.append(commit(final, final + 1))
        lsn = final + 1
    whole = stream(provide_transaction_metadata="true")
    for message in [*RELATIONS, *messages]:
        whole.add(message)
    expected = shown(whole)

    found: list[Any] = []
    changes = stream(provide_transaction_metadata="true")
    queue = [*RELATIONS, *messages]
    crashes = 5
    while queue:
        for _ in range(chance.randrange(4)):
            if queue:
                changes.add(queue.pop(0))
        found += shown(changes)
        if crashes and chance.random() < 0.2:  # what was added and not taken is sent again
            changes = stream(resumed(changes.position.as_offset()), provide_transaction_metadata="true")
            crashes -= 1
            queue = [*RELATIONS, *messages]
    assert found == expected
