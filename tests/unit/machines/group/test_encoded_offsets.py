"""Offsets that are loaded as bytes are those that decoding every record gives."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.broker.coordination.gathered_batch import GatheredBatch
from ottla.broker.coordination.loading import replay_batch
from ottla.machines.coordinator_machine import CoordinatorMachine, CoordinatorRecord, TransactionStamp, size_of
from ottla.machines.group.committed import CommittedOffset
from ottla.machines.group.group_coordinator import GroupCoordinator
from ottla.machines.group.membership import NewIds
from ottla.machines.group.records import group_forgotten, offset_committed, offset_forgotten
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.batch import read_header
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.kernel import Record
from ottla.wire.faults import EncodeError
from ottla.wire.record_values import CoordinatorTopic

NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 60 * 60 * 1000
TOPIC_IDS = {"t": Uuid(bytes(range(16))), "u": Uuid(bytes(range(16, 32)))}
# As long as no metadata and a topic's id, and with the same bytes where the id is announced.
LIKE_A_TOPIC_ID = "12345678\x01\x00\x101234567"


class Decoding(GroupCoordinator):
    """Loads as if there were no shorter way."""

    def replay_encoded(self, records: Iterator[Record]) -> Iterator[Record]:
        return records


def coordinator(kind: type[GroupCoordinator] = GroupCoordinator) -> GroupCoordinator:
    return kind(GroupSettings(), MetadataImage(), NewIds(lambda: "an-id", lambda: "an-id"))


def no_group_is_broken(subject: str | None, problem: Exception) -> None:
    raise problem


def load(machine: GroupCoordinator, *batches: bytes) -> GroupCoordinator:
    for batch in batches:
        replay_batch(machine, CoordinatorTopic.CONSUMER_OFFSETS, batch, 0, read_header(batch, 0), no_group_is_broken)
    return machine


def batch_of(*records: CoordinatorRecord, producer_id: int | None = None) -> bytes:
    stamp = None if producer_id is None else TransactionStamp(producer_id, 0)
    batch = GatheredBatch(stamp, base_sequence=0, compression=0)
    written = [CoordinatorMachine().encode(record) for record in records]
    batch.add(written, size_of(written), NOW_MS)
    return bytes(batch.build(0, -1))


def commit(group: str, topic: str, partition: int, offset: int, **more: object) -> CoordinatorRecord:
    committed = CommittedOffset(offset, commit_timestamp_ms=NOW_MS + offset, topic_id=TOPIC_IDS[topic])
    return offset_committed(group, topic, partition, committed._replace(**more))


def in_version_3(record: CoordinatorRecord) -> CoordinatorRecord:
    """As Kafka wrote it before 4.1."""
    return record._replace(version=3)


def marker(producer_id: int, *, committed: bool) -> bytes:
    return bytes(build_end_transaction_marker(EndTransactionMarker(committed, 0), producer_id, 0, NOW_MS))


def state(machine: GroupCoordinator) -> tuple[object, ...]:
    """Groups and what they have committed. The order of commits is not part of it: only comparisons are."""
    groups = {group_id: (group.TYPE, group.state_timestamp_ms) for group_id, group in machine.groups.items()}
    each = sorted(machine.offsets.each())
    committed = {
        (group_id, topic, partition): machine.offsets.get(group_id, topic, partition)._replace(order=0)
        for group_id, topic, partition, _ in each
    }
    assert sorted(machine.offsets.each()) == each
    return groups, each, committed, sorted(machine.offsets.pending)


def test_a_loaded_commit_is_found_by_who_asks() -> None:
    machine = load(coordinator(), batch_of(commit("g", "t", 0, 7), commit("g", "t", 1, 8), commit("g", "u", 0, 9)))

    assert len(machine.offsets) == 3
    assert machine.offsets.by_group == {}, "nobody has asked yet"
    found = machine.offsets.get("g", "t", 1)
    assert found == CommittedOffset(8, commit_timestamp_ms=NOW_MS + 8, topic_id=TOPIC_IDS["t"])
    assert machine.groups["g"].state_timestamp_ms == NOW_MS + 7


@pytest.mark.parametrize("version", [3, 4])
def test_a_commit_without_the_id_of_its_topic_is_found(version: int) -> None:
    record = commit("g", "t", 0, 7, leader_epoch=5, topic_id=ZERO_UUID)._replace(version=version)
    machine = load(coordinator(), batch_of(record))

    assert machine.offsets.by_group == {}
    assert machine.offsets.encoded.oldest_commit_ms("g") == NOW_MS + 7
    assert machine.offsets.get("g", "t", 0) == CommittedOffset(7, 5, commit_timestamp_ms=NOW_MS + 7)


def test_the_later_of_two_loaded_commits_counts() -> None:
    machine = load(coordinator(), batch_of(commit("g", "t", 0, 7)), batch_of(commit("g", "t", 0, 3)))

    assert list(machine.offsets.each()) == [("g", "t", 0, 3)]


def test_metadata_that_looks_like_the_id_of_a_topic_is_kept() -> None:
    record = commit("g", "t", 0, 7, metadata=LIKE_A_TOPIC_ID, topic_id=ZERO_UUID)
    found = load(coordinator(), batch_of(record)).offsets.get("g", "t", 0)

    assert found is not None
    assert found.metadata == LIKE_A_TOPIC_ID


def test_a_commit_after_the_group_was_forgotten_makes_it_again() -> None:
    gone = batch_of(offset_forgotten("g", "t", 0), group_forgotten("g"))
    machine = load(coordinator(), batch_of(commit("g", "t", 0, 7)), gone)
    assert not machine.groups
    assert not len(machine.offsets)

    load(machine, batch_of(commit("g", "t", 0, 8)))
    assert list(machine.groups) == ["g"]
    assert list(machine.offsets.each()) == [("g", "t", 0, 8)]


def test_a_commit_within_a_transaction_gives_way_to_a_later_one_without() -> None:
    machine = load(
        coordinator(),
        batch_of(commit("g", "t", 0, 2), producer_id=5),
        batch_of(commit("g", "t", 0, 3)),
        marker(5, committed=True),
    )

    assert list(machine.offsets.each()) == [("g", "t", 0, 3)]


def test_a_commit_within_a_transaction_counts_over_an_earlier_one() -> None:
    machine = load(
        coordinator(),
        batch_of(commit("g", "t", 0, 1)),
        batch_of(commit("g", "t", 0, 2), producer_id=5),
        marker(5, committed=True),
    )

    assert list(machine.offsets.each()) == [("g", "t", 0, 2)]


def test_looking_for_old_offsets_leaves_young_ones_encoded() -> None:
    machine = load(coordinator(), batch_of(commit("old", "t", 0, 1), commit("young", "t", 0, DAY_MS)))
    after_retention_ms = NOW_MS + machine.settings.offsets_retention_ms + 1

    decision = machine.expire_offsets(after_retention_ms)

    assert [record.key.group for record in decision.records] == ["old", "old"], "its offset, and itself"
    assert list(machine.offsets.encoded.by_group) == ["young"]


places = st.tuples(st.sampled_from("gh"), st.sampled_from("tu"), st.integers(0, 2))
more = st.sampled_from(
    [
        {},
        {},
        {"metadata": "a note"},
        {"metadata": LIKE_A_TOPIC_ID, "topic_id": ZERO_UUID},
        {"expire_timestamp_ms": NOW_MS * 2},
        {"topic_id": ZERO_UUID},
    ]
)
latest_commits = st.builds(lambda place, offset, more: commit(*place, offset, **more), places, st.integers(-9, 9), more)
commits = st.one_of(
    latest_commits,
    st.builds(lambda place, offset: in_version_3(commit(*place, offset)), places, st.integers(-9, 9)),
)
records = st.one_of(
    commits,
    commits,
    commits,
    st.builds(lambda place: offset_forgotten(*place), places),
    st.sampled_from("gh").map(group_forgotten),
)
entries = st.one_of(
    st.lists(records, min_size=1, max_size=6).map(lambda found: batch_of(*found)),
    st.builds(
        lambda found, producer_id: batch_of(*found, producer_id=producer_id),
        st.lists(commits, min_size=1, max_size=3),
        st.integers(1, 2),
    ),
    st.builds(
        lambda producer_id, committed: marker(producer_id, committed=committed), st.integers(1, 2), st.booleans()
    ),
)


@pytest.mark.slow
@given(st.lists(entries, max_size=12), st.lists(entries, max_size=4))
def test_any_log_loads_to_what_decoding_it_gives(log: Sequence[bytes], later: Sequence[bytes]) -> None:
    """What comes later is replayed after somebody has asked after everything."""
    loaded, decoded = load(coordinator(), *log), load(coordinator(Decoding), *log)
    later_ms = NOW_MS + loaded.settings.offsets_retention_ms
    assert sorted(map(str, loaded.expire_offsets(later_ms).records)) == sorted(
        map(str, decoded.expire_offsets(later_ms).records)
    )
    assert state(loaded) == state(decoded)
    assert state(load(loaded, *later)) == state(load(decoded, *later))


def test_a_commit_of_a_group_whose_name_is_too_long_has_no_form() -> None:
    with pytest.raises(EncodeError):
        coordinator().encode(commit("g" * 40_000, "t", 3, 5))
