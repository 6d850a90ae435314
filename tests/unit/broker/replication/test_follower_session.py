"""What a follower tells its leader in an incremental fetch session (KIP-227)."""

from ottla.broker.replication.follower_session import FollowerSession, Position
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest

A, B = bytes(15) + b"a", bytes(15) + b"b"


def position(offset: int) -> Position:
    return Position(offset, 1, 1, 0)


def asked(session: FollowerSession) -> tuple[int, int, dict, dict]:
    """Session and epoch, partitions that are named with their offsets, and those that are to be forgotten."""
    request = FetchRequest()
    session.fill(request, 1000)
    named = {(topic.topic_id, one.partition): one.fetch_offset for topic in request.topics for one in topic.partitions}
    forgotten = {topic.topic_id: list(topic.partitions) for topic in request.forgotten_topics_data}
    return request.session_id, request.session_epoch, named, forgotten


def open_session() -> FollowerSession:
    session = FollowerSession()
    session.want((A, 0), position(5))
    session.want((B, 1), position(7))
    assert asked(session) == (0, 0, {(A, 0): 5, (B, 1): 7}, {})
    session.on_reply(ErrorCode.NONE, 99)
    return session


def test_only_what_has_changed_is_named():
    session = open_session()
    assert asked(session) == (99, 1, {}, {})
    session.on_reply(ErrorCode.NONE, 99)
    session.want((A, 0), position(6))
    session.want((B, 1), position(7))
    assert asked(session) == (99, 2, {(A, 0): 6}, {})


def test_a_partition_that_is_left_out_is_forgotten_and_may_come_back():
    session = open_session()
    session.leave_out((A, 0))
    assert asked(session) == (99, 1, {}, {A: [0]})
    assert session.asked((A, 0)) is None
    session.on_reply(ErrorCode.NONE, 99)
    session.want((A, 0), position(5))
    assert asked(session) == (99, 2, {(A, 0): 5}, {})


def test_a_partition_that_leaves_and_comes_back_between_two_requests_is_not_named():
    session = open_session()
    session.leave_out((A, 0))
    session.want((A, 0), position(5))
    assert asked(session) == (99, 1, {}, {})


def test_a_session_that_the_leader_has_forgotten_is_opened_anew():
    session = open_session()
    asked(session)
    session.on_reply(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert asked(session) == (0, 0, {(A, 0): 5, (B, 1): 7}, {})


def test_after_a_lost_request_the_old_session_is_ended_by_the_new_one():
    session = open_session()
    asked(session)
    session.on_lost()
    assert asked(session) == (99, 0, {(A, 0): 5, (B, 1): 7}, {})


def test_a_leader_without_room_for_sessions_is_told_everything_each_time():
    session = FollowerSession()
    session.want((A, 0), position(5))
    for _ in range(2):
        assert asked(session) == (0, 0, {(A, 0): 5}, {})
        session.on_reply(ErrorCode.NONE, 0)
