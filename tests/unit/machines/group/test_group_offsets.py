"""Committed offsets: taken, told, replaced by transactions, forgotten (KIP-211, KIP-447, KIP-496)."""

import pytest

from ottla.machines.coordinator_machine import TransactionStamp
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetDeleteRequest,
    TxnOffsetCommitRequest,
)
from tests.unit.machines.group.group_bench import NOW_MS, Groups, subscription

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PRODUCER = TransactionStamp(7, 2)


def commit_in_transaction(
    groups: Groups, offsets: dict[tuple[str, int], int], stamp: TransactionStamp = PRODUCER, **member: object
) -> ErrorCode | list[ErrorCode]:
    request = TxnOffsetCommitRequest(
        transactional_id="txn",
        group_id="readers",
        producer_id=stamp.producer_id,
        producer_epoch=stamp.producer_epoch,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=""
                    )
                ],
            )
            for (topic, index), offset in offsets.items()
        ],
        **member,  # type: ignore[arg-type]
    )
    outcome = groups.carry_out(groups.machine.commit_offsets_in_transaction(request, groups.now_ms))
    if isinstance(outcome, ErrorCode):
        return outcome
    return [ErrorCode(part.error_code) for topic in outcome.topics for part in topic.partitions]


def delete(groups: Groups, topic: str, *indexes: int) -> ErrorCode | list[ErrorCode]:
    request = OffsetDeleteRequest(
        group_id="readers",
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ],
            )
        ],
    )
    response = groups.carry_out(groups.machine.delete_offsets(request, groups.now_ms))
    if response.error_code:
        return ErrorCode(response.error_code)
    return [ErrorCode(part.error_code) for topic in response.topics for part in topic.partitions]


# Committing


def test_what_was_committed_last_is_told() -> None:
    groups = Groups()
    assert groups.commit({("orders", 0): 5, ("orders", 1): 6, ("payments", 0): 7}) == [ErrorCode.NONE] * 3
    groups.commit({("orders", 0): 8})
    assert groups.committed() == {("orders", 0): 8, ("orders", 1): 6, ("payments", 0): 7}
    assert groups.committed({"orders": [1, 2]}) == {("orders", 1): 6, ("orders", 2): -1}


def test_of_a_group_that_does_not_exist_nothing_is_told() -> None:
    groups = Groups()
    assert groups.committed() == {}
    assert groups.committed({"orders": [0]}) == {("orders", 0): -1}


def test_a_commit_is_written_as_kafka_writes_it() -> None:
    groups = Groups()
    groups.commit({("orders", 1): 5}, metadata="a note")
    assert groups.records() == [
        (
            OffsetCommitKey(group="readers", topic="orders", partition=1),
            OffsetCommitValue(offset=5, leader_epoch=3, metadata="a note", commit_timestamp=NOW_MS),
        )
    ]
    (entry,) = groups.log
    assert entry[2][:2] == b"\0\4", "version 4"  # type: ignore[index]


def test_a_commit_that_says_how_long_it_is_kept_is_of_the_version_that_can_say_it() -> None:
    groups = Groups()
    groups.commit({("orders", 1): 5}, retention_time_ms=1000, version=4)
    (entry,) = groups.log
    assert entry[2][:2] == b"\0\1"  # type: ignore[index]
    assert groups.records()[0][1].expire_timestamp == NOW_MS + 1000


def test_a_commit_that_is_to_be_kept_longer_than_time_can_tell_is_kept_for_ever() -> None:
    groups = Groups(offsets_retention_ms=DAY_MS, offsets_retention_check_interval_ms=DAY_MS)
    groups.commit({("orders", 1): 5}, retention_time_ms=(1 << 63) - 1, version=4)
    assert groups.records()[0][1].expire_timestamp == (1 << 63) - 1
    groups.advance(400 * DAY_MS)
    assert groups.committed() == {("orders", 1): 5}


def test_a_note_that_is_too_long_is_refused_where_it_is() -> None:
    groups = Groups(offset_metadata_max_bytes=10)
    assert groups.commit({("orders", 0): 1}, metadata="x" * 11) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert groups.commit({("orders", 0): 1}, metadata=None) == [ErrorCode.NONE]
    assert groups.committed() == {("orders", 0): 1}


def test_whoever_commits_without_being_a_member_makes_a_group_that_only_keeps_offsets() -> None:
    groups = Groups()
    groups.commit({("orders", 0): 1})
    assert (groups.state, groups.group().protocol_type) == ("Empty", None)


def test_a_group_that_has_members_takes_offsets_from_them_alone() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    offsets = {("orders", 0): 1}
    assert groups.commit(offsets) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit(offsets, member_id="bob", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit(offsets, member_id=ann.member_id, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert groups.commit(offsets, member_id=ann.member_id, generation=1) == [ErrorCode.NONE]


def test_a_group_that_became_empty_takes_offsets_from_anyone() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    groups.leave(ann)
    assert groups.commit({("orders", 0): 1}) == [ErrorCode.NONE]
    assert groups.commit({("orders", 0): 1}, member_id=ann.member_id, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("version", "error"), [(8, "ILLEGAL_GENERATION"), (9, "GROUP_ID_NOT_FOUND")])
def test_a_member_of_no_group_cannot_commit(version: int, error: str) -> None:
    assert Groups().commit({("orders", 0): 1}, member_id="ann", generation=1, version=version) is ErrorCode[error]


def test_members_may_commit_while_they_gather_but_not_before_they_have_their_assignments() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    groups.join("bob")
    offsets = {("orders", 0): 1}
    assert groups.commit(offsets, member_id=ann.member_id, generation=1) == [ErrorCode.NONE]
    groups.ask_join("ann", ann.member_id)
    assert groups.state == "CompletingRebalance"
    assert groups.commit(offsets, member_id=ann.member_id, generation=2) is ErrorCode.REBALANCE_IN_PROGRESS


# Transactions


def test_what_a_transaction_commits_is_told_when_it_is_committed() -> None:
    groups = Groups()
    groups.commit({("orders", 0): 1})
    assert commit_in_transaction(groups, {("orders", 0): 5}) == [ErrorCode.NONE]
    assert groups.committed() == {("orders", 0): 1}
    groups.end_transaction(PRODUCER, committed=True)
    assert groups.committed() == {("orders", 0): 5}


def test_what_an_aborted_transaction_committed_never_was() -> None:
    groups = Groups()
    commit_in_transaction(groups, {("orders", 0): 5})
    groups.end_transaction(PRODUCER, committed=False)
    assert groups.committed() == {}


def test_an_offset_that_may_be_about_to_change_is_not_stable() -> None:
    groups = Groups()
    groups.commit({("orders", 0): 1, ("orders", 1): 2})
    commit_in_transaction(groups, {("orders", 0): 5})
    unstable = {("orders", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT, ("orders", 1): 2}
    assert groups.committed(require_stable=True) == unstable
    assert groups.committed({"orders": [0, 1]}, require_stable=True) == unstable
    assert groups.committed({"orders": [0, 1]}) == {("orders", 0): 1, ("orders", 1): 2}


def test_a_later_commit_is_not_undone_by_an_earlier_transaction() -> None:
    groups = Groups()
    commit_in_transaction(groups, {("orders", 0): 5})
    groups.commit({("orders", 0): 9})
    groups.end_transaction(PRODUCER, committed=True)
    assert groups.committed() == {("orders", 0): 9}


def test_transactions_of_different_producers_do_not_mix() -> None:
    groups = Groups()
    other = TransactionStamp(8, 0)
    commit_in_transaction(groups, {("orders", 0): 5})
    commit_in_transaction(groups, {("orders", 1): 6}, other)
    groups.end_transaction(other, committed=True)
    groups.end_transaction(PRODUCER, committed=False)
    assert groups.committed() == {("orders", 1): 6}


def test_a_transaction_of_a_stale_member_is_refused() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    offsets = {("orders", 0): 1}
    stale = commit_in_transaction(groups, offsets, member_id=ann.member_id, generation_id=0)
    assert stale is ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(groups, offsets, member_id="bob", generation_id=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_in_transaction(groups, offsets) == [ErrorCode.NONE], "a producer too old to say who it is"


# Forgetting


def test_offsets_are_deleted_where_nobody_reads() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    member = {"member_id": ann.member_id, "generation": 1}
    groups.commit({("orders", 0): 1, ("old", 0): 2, ("old", 1): 3}, **member)  # type: ignore[arg-type]
    assert delete(groups, "orders", 0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert delete(groups, "old", 0, 7) == [ErrorCode.NONE] * 2
    assert groups.committed() == {("orders", 0): 1, ("old", 1): 3}


def test_offsets_of_groups_whose_subscriptions_nobody_understands_are_kept_while_they_have_members() -> None:
    groups = Groups()
    groups.settled("ann", protocol_type="connect", protocols={"own": b"\1"})
    assert delete(groups, "orders", 0) is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    assert delete(Groups(), "orders", 0) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deletion_reaches_what_a_transaction_is_about_to_commit() -> None:
    groups = Groups()
    commit_in_transaction(groups, {("orders", 0): 5})
    delete(groups, "orders", 0)
    groups.end_transaction(PRODUCER, committed=True)
    assert groups.committed() == {}


def test_offsets_in_a_deleted_topic_are_forgotten() -> None:
    groups = Groups()
    groups.commit({("orders", 0): 1, ("orders", 1): 1, ("payments", 0): 2})
    groups.commit({("orders", 0): 3}, group_id="others")
    commit_in_transaction(groups, {("orders", 5): 5})
    groups.carry_out(groups.machine.on_topics_deleted(["orders", "never was"], groups.now_ms))
    groups.end_transaction(PRODUCER, committed=True)
    assert groups.committed() == {("payments", 0): 2}
    assert groups.committed(group_id="others") == {}


# Growing old


def test_offsets_of_a_group_without_a_protocol_grow_old_from_their_commit_on() -> None:
    groups = Groups(offsets_retention_ms=7 * DAY_MS)
    groups.commit({("orders", 0): 1})
    groups.advance(6 * DAY_MS)
    groups.commit({("orders", 1): 1})
    groups.advance(DAY_MS)
    assert groups.committed() == {("orders", 1): 1}
    groups.advance(6 * DAY_MS)
    assert groups.machine.groups == {}, "and so does the group"


def test_offsets_of_a_group_grow_old_when_it_is_empty() -> None:
    groups = Groups(offsets_retention_ms=7 * DAY_MS)
    (ann,) = groups.settled("ann", session_timeout_ms=20 * DAY_MS)
    groups.commit({("orders", 0): 1}, member_id=ann.member_id, generation=1)
    groups.advance(10 * DAY_MS)
    groups.leave(ann)
    groups.advance(7 * DAY_MS - 1)
    assert groups.committed() == {("orders", 0): 1}
    groups.advance(600_000)
    assert groups.machine.groups == {}


def test_offsets_in_a_topic_that_members_no_longer_read_grow_old_while_the_group_lives() -> None:
    groups = Groups(offsets_retention_ms=7 * DAY_MS)
    (ann,) = groups.settled("ann", session_timeout_ms=20 * DAY_MS)
    groups.commit({("orders", 0): 1, ("old", 0): 2}, member_id=ann.member_id, generation=1)
    groups.advance(8 * DAY_MS)
    assert groups.committed() == {("orders", 0): 1}
    assert groups.state == "Stable"


def test_a_commit_with_a_time_of_its_own_is_kept_for_that_long() -> None:
    groups = Groups(offsets_retention_ms=7 * DAY_MS, offsets_retention_check_interval_ms=HOUR_MS)
    groups.commit({("orders", 0): 1}, retention_time_ms=5 * HOUR_MS, version=4)
    groups.commit({("orders", 1): 1}, retention_time_ms=10 * DAY_MS, version=4)
    groups.advance(5 * HOUR_MS - 1)
    assert groups.committed() == {("orders", 0): 1, ("orders", 1): 1}
    groups.advance(1)
    assert groups.committed() == {("orders", 1): 1}
    groups.advance(8 * DAY_MS)
    assert groups.committed() == {("orders", 1): 1}


def test_offsets_that_a_transaction_is_about_to_replace_do_not_grow_old() -> None:
    groups = Groups(offsets_retention_ms=DAY_MS)
    groups.commit({("orders", 0): 1})
    commit_in_transaction(groups, {("orders", 0): 5})
    groups.advance(3 * DAY_MS)
    assert groups.committed() == {("orders", 0): 1}
    groups.end_transaction(PRODUCER, committed=False)
    groups.advance(DAY_MS)
    assert groups.machine.groups == {}


def test_a_group_that_is_gathering_is_not_forgotten() -> None:
    groups = Groups(offsets_retention_ms=DAY_MS, offsets_retention_check_interval_ms=1000)
    call = groups.ask_join("ann", session_timeout_ms=30_000)
    groups.advance(5000)
    assert groups.ask_join("ann", call.member_id, protocols={"range": subscription()}).is_answered is False
    groups.advance(3000)
    assert groups.state == "CompletingRebalance"
