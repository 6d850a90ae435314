"""The records of a commit, made as bytes: as the codec writes them, and replayed to what the log is replayed to."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.coordinator_machine import CoordinatorMachine, size_of
from ottla.machines.group import commits
from ottla.machines.group.commits import take_apart
from ottla.machines.group.committed import CommittedOffset
from ottla.machines.group.offsets import Offsets
from ottla.machines.group.records import offset_committed
from ottla.wire.errors import ErrorCode
from ottla.wire.faults import EncodeError
from ottla.wire.messages import OffsetCommitRequest
from ottla.wire.record_values import CoordinatorTopic, decode_key, decode_value

NOW_MS = 1_700_000_000_000
MOST_METADATA = 50
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition

topic_ids = st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16).map(Uuid)
partitions = st.builds(
    _Partition,
    partition_index=st.integers(0, (1 << 31) - 1),
    committed_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    committed_leader_epoch=st.integers(-1, (1 << 31) - 1),
    committed_metadata=st.none() | st.text(max_size=MOST_METADATA + 5),
)
topics = st.builds(_Topic, name=st.text(min_size=1, max_size=20), topic_id=topic_ids, partitions=st.lists(partitions))


@pytest.fixture(params=["compiled", "in Python"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(commits, "encode", commits.encode_in_python)
        monkeypatch.setattr(commits, "replay", commits.replay_in_python)


@pytest.mark.slow
@given(st.text(max_size=20), st.lists(topics, max_size=4), st.sampled_from([-1, NOW_MS + 5]))
def test_a_commit_is_written_and_replayed_as_its_messages_would_be(group: str, asked: Any, expires_ms: int) -> None:
    told, made = take_apart(group, deepcopy(asked), NOW_MS, expires_ms, MOST_METADATA)
    offsets, expected, records, errors = Offsets(), Offsets(), [], []
    for topic in asked:
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            is_taken = len(metadata) <= MOST_METADATA
            errors.append(ErrorCode.NONE if is_taken else ErrorCode.OFFSET_METADATA_TOO_LARGE)
            if is_taken:
                committed = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, NOW_MS, expires_ms
                )
                committed = committed._replace(topic_id=topic.topic_id)
                records.append(offset_committed(group, topic.name, partition.partition_index, committed))
    encoded = [CoordinatorMachine().encode(record) for record in records]
    assert [part.error_code for topic in told for part in topic.partitions] == errors
    assert [(topic.name, topic.topic_id) for topic in told] == [(topic.name, topic.topic_id) for topic in asked]
    assert (made.encoded, made.size, len(made)) == (encoded, size_of(encoded), len(encoded))
    offsets.replay_commits(made)
    for key, value in encoded:
        replayed = decode_key(CoordinatorTopic.CONSUMER_OFFSETS, key)
        assert value is not None
        expected.replay(replayed, decode_value(replayed, value))  # type: ignore[arg-type]
    assert sorted(offsets.each()) == sorted(expected.each())
    for group_id, topic, index, _ in expected.each():
        assert offsets.get(group_id, topic, index) == expected.get(group_id, topic, index)


def test_a_name_that_is_too_long_cannot_be_written() -> None:
    topic = _Topic(name="t", partitions=[_Partition(partition_index=0, committed_offset=1, committed_metadata="")])
    with pytest.raises(EncodeError):
        take_apart("g" * 40_000, [topic], NOW_MS, -1, MOST_METADATA)


def test_text_that_is_no_unicode_cannot_be_written() -> None:
    topic = _Topic(
        name="t", partitions=[_Partition(partition_index=0, committed_offset=1, committed_metadata="\ud800")]
    )
    with pytest.raises(UnicodeEncodeError):
        take_apart("g", [topic], NOW_MS, -1, MOST_METADATA)
