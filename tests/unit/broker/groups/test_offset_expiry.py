"""Offsets that are too old are forgotten, again and again, for as long as the node coordinates their group."""

import pytest

from tests.unit.broker.brokers import TestNode
from tests.unit.broker.groups.test_groups import GROUP, commit, coordinating, fetch_all, offsets_in

HOUR_MS = 3_600_000


def offsets(node: TestNode) -> dict[tuple[str, int], int]:
    return offsets_in(node.send(fetch_all(GROUP), 9)).get(GROUP, {})


@pytest.mark.slow
def test_offsets_still_expire_after_their_tombstones_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    node = coordinating(offsets_retention_minutes="60", offsets_retention_check_interval_ms=str(HOUR_MS))
    node.send(commit(5, generation_id_or_member_epoch=-1), 9)
    assert offsets(node) == {("orders", 0): 5}
    with monkeypatch.context() as lagging:
        for index in range(3):
            lagging.setattr(node.partition("__consumer_offsets", index).state, "has_enough_replicas", False)
        node.timers.advance(2 * HOUR_MS)
    assert offsets(node) == {("orders", 0): 5}
    node.timers.advance(HOUR_MS)
    assert offsets(node) == {}
    node.send(commit(6, generation_id_or_member_epoch=-1), 9)
    node.timers.advance(3 * HOUR_MS)
    assert offsets(node) == {}, "and goes on"
