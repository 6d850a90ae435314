"""Committing, and what a consumer does when its group takes partitions away or gives them."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.errors import CommitFailed, GroupAuthorizationFailed, InvalidGroupId, RebalanceInProgress
from ottla.client.membership.member import Identity
from ottla.client.promise import Promise, spawn
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.testing.scripted_brokers import ScriptedBrokers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FindCoordinatorResponse, OffsetCommitResponse, OffsetFetchResponse
from tests.unit.client.consumer.consumer_bench import Bench, coordinator_is

T0, T1 = TopicPartition("clicks", 0), TopicPartition("clicks", 1)


class FakeMember:
    """Does what the test says, and remembers what the consumer said."""

    def __init__(self, bond):
        self.bond = bond
        self.identity = Identity(3, "member-1")
        self.refused = []
        self.polls = 0
        self.topics = None

    def subscribe(self, topics):
        self.topics = list(topics)

    def subscribe_pattern(self, pattern):
        self.topics = pattern

    def on_poll(self):
        self.polls += 1

    def on_commit_refused(self, code, identity):
        self.refused.append((code, identity))

    def request_rejoin(self, reason):
        self.refused.append(reason)

    def leave(self, behaviour=None):
        async def leave():
            if self.bond._subscription.partitions:
                await self.bond.on_revoked(tuple(self.bond._subscription.partitions))

        return spawn(leave())


class Coordinator:
    """One group's offsets."""

    def __init__(self, brokers):
        self.committed = {}
        self.errors = []
        brokers.answer("FindCoordinator", coordinator_is(1))
        brokers.answer("OffsetCommit", self.commit)
        brokers.answer("OffsetFetch", self.fetch)

    def commit(self, node_id, version, request):
        error = self.errors.pop(0) if self.errors else 0
        topics = []
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                if not error:
                    self.committed[TopicPartition(topic.name, one.partition_index)] = one
                answers.append(
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=error
                    )
                )
            topics.append(OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, partitions=answers))
        return OffsetCommitResponse(topics=topics)

    def fetch(self, node_id, version, request):
        if version < 8:
            found = OffsetFetchResponse.OffsetFetchResponsePartition(partition_index=0, committed_offset=1, metadata="")
            topic = OffsetFetchResponse.OffsetFetchResponseTopic(name=request.topics[0].name, partitions=[found])
            return OffsetFetchResponse(topics=[topic])
        [group] = request.groups
        if self.errors:
            failed = OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", error_code=self.errors.pop(0))
            return OffsetFetchResponse(groups=[failed])
        topics = []
        for topic in group.topics:
            found = []
            for index in topic.partition_indexes:
                known = self.committed.get(TopicPartition(topic.name, index))
                found.append(
                    OffsetFetchResponse.OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=-1 if known is None else known.committed_offset,
                        metadata="" if known is None else known.committed_metadata,
                    )
                )
            topics.append(OffsetFetchResponse.OffsetFetchResponseTopics(name=topic.name, partitions=found))
        return OffsetFetchResponse(groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g", topics=topics)])


@pytest.fixture
def make_group():
    def make(listener=None, subscribes=True, newest=None, **settings):
        brokers = ScriptedBrokers((1,), {"clicks": 2}, newest=newest)
        made = []

        def make_member(cluster, coordinators, client_settings, bond):
            made.append(FakeMember(bond))
            return made[-1]

        bench = Bench(brokers, make_member, group_id="g", **settings)
        bench.coordinator = Coordinator(brokers)
        if subscribes:
            bench.core.subscribe(["clicks"], listener)
            bench.member = made[0]
        return bench

    return make


def assigned(bench, *partitions):
    bench.core.poll(1)
    done = bench.member.bond.on_assigned(partitions)
    bench.brokers.run()
    return done


def run_tasks(bench):
    while bench.core.tasks:
        task = bench.core.tasks.popleft()
        task.run()
        task.done(None)
    bench.brokers.run()


def test_a_group_goes_on_at_its_committed_offset(make_group):
    bench = make_group()
    bench.logs.append(T0, b"a", b"b", b"c")
    bench.coordinator.committed[T0] = type("One", (), {"committed_offset": 2, "committed_metadata": ""})
    assigned(bench, T0)
    assert bench.values() == [b"c"]
    assert bench.brokers.asked("OffsetFetch")[0].require_stable


def test_brokers_of_kafka_2_1_are_spoken_to_in_their_versions(make_group):
    """What each API was at then. Neither topic ids, nor groups of OffsetFetch, nor KIP-320 for consumers."""
    of_2_1 = {
        "Fetch": 10,
        "ListOffsets": 4,
        "Metadata": 7,
        "OffsetCommit": 6,
        "OffsetFetch": 5,
        "FindCoordinator": 2,
        "OffsetForLeaderEpoch": 1,
    }
    bench = make_group(newest=of_2_1, enable_auto_commit=False, client_rack="here", isolation_level="read_committed")
    bench.logs.append(T0, b"a", b"b")
    assigned(bench, T0)
    assert bench.values() == [b"b"]
    bench.call(bench.core.offsets.commit(None, 1000))
    assert bench.coordinator.committed[T0].committed_offset == 2
    bench.brokers.leaders["clicks", 0] = 1, 1
    bench.core.cluster.refresh()
    bench.brokers.run()
    bench.logs.append(T0, b"c", epoch=1)
    bench.end_long_polls()
    assert bench.values() == [b"c"]
    assert bench.brokers.asked("OffsetForLeaderEpoch") == []
    asked = {one.api: one.version for one in bench.brokers.transcript}
    assert all(asked[api] == newest for api, newest in of_2_1.items() if api in asked)


def test_offsets_that_a_transaction_still_holds_are_waited_for(make_group):
    bench = make_group()
    bench.logs.append(T0, b"a")
    bench.coordinator.errors = [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assigned(bench, T0)
    bench.brokers.advance(1000)
    assert bench.values() == [b"a"]


def test_what_was_handed_out_is_committed_with_generation_and_epoch(make_group):
    bench = make_group(enable_auto_commit=False)
    bench.logs.append(T0, b"a", b"b", epoch=5)
    assigned(bench, T0)
    assert len(bench.values()) == 2
    bench.call(bench.core.offsets.commit(None, 1000))
    [request] = bench.brokers.asked("OffsetCommit")
    assert (request.generation_id_or_member_epoch, request.member_id) == (3, "member-1")
    [one] = request.topics[0].partitions
    assert (one.committed_offset, one.committed_leader_epoch, one.committed_metadata) == (2, 5, "")


def test_a_commit_goes_on_after_errors_that_pass(make_group):
    bench = make_group(enable_auto_commit=False)
    assigned(bench, T0)
    bench.coordinator.errors = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(7, "note")}, 5000), advance_ms=2000)
    assert bench.coordinator.committed[T0].committed_offset == 7
    assert len(bench.brokers.asked("FindCoordinator")) == 2


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.ILLEGAL_GENERATION, CommitFailed),
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailed),
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgress),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailed),
    ],
)
def test_a_refused_commit_is_told_and_the_member_learns_of_it(make_group, code, error):
    bench = make_group(enable_auto_commit=False)
    assigned(bench, T0)
    bench.coordinator.errors = [code]
    with pytest.raises(error):
        bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    expected = [] if error is GroupAuthorizationFailed else [(code, Identity(3, "member-1"))]
    assert bench.member.refused == expected


def test_a_newer_epoch_of_the_same_member_commits_again(make_group):
    bench = make_group(enable_auto_commit=False, group_protocol="consumer")
    assigned(bench, T0)
    bench.coordinator.errors = [ErrorCode.STALE_MEMBER_EPOCH]
    committing = spawn(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    bench.brokers.answer("OffsetCommit", lambda *asked: moved_on(bench, *asked))
    bench.brokers.run()
    bench.brokers.advance(1000)
    assert committing.value() is None
    assert [one.generation_id_or_member_epoch for one in bench.brokers.asked("OffsetCommit")] == [3, 4]


def moved_on(bench, *asked):
    bench.member.identity = Identity(4, "member-1")
    return bench.coordinator.commit(*asked)


def test_one_that_has_not_joined_yet_has_nothing_to_commit(make_group):
    """As in Java: only offsets that somebody names are refused then."""
    bench = make_group(enable_auto_commit=False)
    bench.member.identity = Identity()
    bench.call(bench.core.offsets.commit(None, 5000))
    assert bench.brokers.asked("OffsetCommit") == []
    with pytest.raises(CommitFailed):
        bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))


def test_one_that_is_no_member_any_more_cannot_commit(make_group):
    bench = make_group(enable_auto_commit=False)
    assigned(bench, T0)
    bench.member.identity = Identity()
    with pytest.raises(CommitFailed):
        bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    assert bench.brokers.asked("OffsetCommit") == []


def test_the_callback_of_a_commit_runs_in_a_later_call_and_nothing_is_tried_twice(make_group):
    bench = make_group(enable_auto_commit=False)
    assigned(bench, T0)
    told = []
    bench.coordinator.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    bench.core.offsets.commit_later({T0: OffsetAndMetadata(7)}, lambda offsets, error: told.append(error))
    bench.brokers.run()
    assert told == []
    run_tasks(bench)
    assert [error.code for error in told] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert len(bench.brokers.asked("OffsetCommit")) == 1


def test_offsets_are_committed_by_the_way_at_the_poll_after_the_interval(make_group):
    bench = make_group(auto_commit_interval_ms=1000)
    bench.logs.append(T0, b"a", b"b")
    assigned(bench, T0)
    assert bench.values(1) == [b"a"]
    bench.brokers.advance(1100)
    assert bench.coordinator.committed == {}
    bench.values(1)
    assert bench.coordinator.committed[T0].committed_offset == 1


def test_revoked_partitions_wait_for_the_next_poll_then_are_committed_then_told(make_group):
    told = []

    class Listener:
        def on_partitions_revoked(self, partitions):
            told.append((partitions, bench.coordinator.committed[T0].committed_offset))

    bench = make_group(Listener())
    bench.core.bond.listener = None
    bench.logs.append(T0, b"a", b"b")
    assigned(bench, T0, T1)
    assert bench.values(1) == [b"a"]
    bench.core.bond.listener = Listener()
    revoking = bench.member.bond.on_revoked((T0,))
    bench.brokers.advance(1000)
    assert not revoking.is_done
    assert bench.coordinator.committed == {}
    assert bench.core.poll(10) == []
    bench.brokers.run()
    assert told == []
    run_tasks(bench)
    assert told == [((T0,), 1)]
    assert revoking.is_done
    assert list(bench.core.subscription.partitions) == [T1]


def test_a_partition_is_not_fetched_before_the_listener_knows_of_it(make_group):
    class Listener:
        def on_partitions_assigned(self, partitions):
            bench.core.seek(T0, OffsetAndMetadata(1))

    bench = make_group(Listener())
    bench.logs.append(T0, b"a", b"b")
    assigned(bench, T0)
    assert bench.values() == []
    assert bench.brokers.asked("Fetch") == []
    run_tasks(bench)
    assert bench.values() == [b"b"]


def test_lost_partitions_are_told_as_lost_and_not_committed(make_group):
    told = []

    class Listener:
        def on_partitions_assigned(self, partitions):
            pass

        def on_partitions_lost(self, partitions):
            told.append(partitions)

    bench = make_group(Listener())
    bench.logs.append(T0, b"a")
    assigned(bench, T0)
    run_tasks(bench)
    bench.values()
    bench.member.bond.on_lost((T0,))
    bench.core.poll(1)
    run_tasks(bench)
    assert told == [(T0,)]
    assert (bench.core.subscription.partitions, bench.coordinator.committed) == ({}, {})


def test_a_member_that_was_fenced_meanwhile_has_lost_what_was_to_be_revoked(make_group):
    told = []

    class Listener:
        def on_partitions_assigned(self, partitions):
            pass

        def on_partitions_lost(self, partitions):
            told.append(partitions)

    bench = make_group(Listener())
    assigned(bench, T0)
    run_tasks(bench)
    bench.member.bond.on_revoked((T0,))
    bench.member.identity = Identity()
    bench.core.poll(1)
    run_tasks(bench)
    assert told == [(T0,)]


def test_closing_commits_revokes_and_leaves_without_another_poll(make_group):
    bench = make_group()
    bench.logs.append(T0, b"a")
    assigned(bench, T0)
    assert bench.values() == [b"a"]
    closing = spawn(bench.core.close())
    bench.brokers.run()
    bench.end_long_polls()
    assert isinstance(closing, Promise)
    assert closing.is_done
    assert bench.coordinator.committed[T0].committed_offset == 1
    assert bench.core.subscription.partitions == {}


def test_what_the_member_cannot_mend_is_raised_by_poll(make_group):
    bench = make_group()
    bench.member.bond.on_failed(GroupAuthorizationFailed())
    with pytest.raises(GroupAuthorizationFailed):
        bench.core.poll(1)


def test_a_pattern_follows_the_topics_of_the_cluster(make_group):
    bench = make_group(subscribes=False)
    bench.core.subscribe_pattern("cl.*", lambda name: name.startswith("cl"), None)
    bench.core.poll(1)
    bench.brokers.run()
    assert bench.core._member.topics == ["clicks"]
    bench.brokers.topics |= {"clocks": 1, "other": 1}
    bench.core.cluster.refresh()
    bench.brokers.run()
    assert bench.core._member.topics == ["clicks", "clocks"]


def test_without_a_group_there_is_nothing_to_commit_to(make_bench):
    bench = make_bench()
    bench.core.assign([T0])
    with pytest.raises(InvalidGroupId, match=r"set group\.id"):
        bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))


def committed_offsets(bench, partition=T0):
    return [
        one.committed_offset
        for request in bench.brokers.asked("OffsetCommit")
        for topic in request.topics
        for one in topic.partitions
        if one.partition_index == partition.partition
    ]


def test_an_auto_commit_that_failed_is_made_again_of_the_positions_of_then(make_group):
    bench = make_group(auto_commit_interval_ms=1000, retry_backoff_ms=100)
    bench.logs.append(T0, b"a", b"b", b"c", b"d")
    assigned(bench, T0)
    assert bench.values(1) == [b"a"]
    bench.brokers.advance(1000)
    bench.coordinator.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert bench.values(1) == [b"b"]  # commits 1, and is refused for now
    bench.brokers.advance(5000)
    assert committed_offsets(bench) == [1]  # nothing is sent again behind the application's back
    bench.poll(1)
    bench.brokers.run()
    assert committed_offsets(bench) == [1, 2]


def test_an_auto_commit_that_failed_never_sets_back_a_commit_that_has_returned(make_group):
    bench = make_group(auto_commit_interval_ms=1000)
    bench.logs.append(T0, b"a", b"b", b"c", b"d")
    assigned(bench, T0)
    bench.values(3)
    bench.brokers.advance(1000)
    bench.coordinator.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    bench.poll(1)
    bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(1)}, 5000))
    bench.brokers.advance(900)
    assert bench.coordinator.committed[T0].committed_offset == 1


def test_a_commit_is_not_tried_again_for_a_generation_that_is_over(make_group):
    """The partition may be another member's, who has committed more: this member's next generation is no excuse."""
    bench = make_group(enable_auto_commit=False)
    assigned(bench, T0)
    bench.coordinator.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    committing = spawn(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    bench.brokers.run()
    bench.member.identity = Identity(4, "member-1")
    bench.brokers.advance(5000)
    with pytest.raises(CommitFailed, match="moved on"):
        committing.value()
    assert len(bench.brokers.asked("OffsetCommit")) == 1


@pytest.mark.parametrize("comes_back", [False, True], ids=["gone", "gone and back"])
def test_a_commit_is_not_tried_again_for_a_partition_that_was_given_up(make_group, comes_back):
    """With the new protocol a member keeps its id while partitions go, and perhaps come back."""
    bench = make_group(enable_auto_commit=False, group_protocol="consumer")
    assigned(bench, T0)
    bench.coordinator.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    committing = spawn(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    bench.brokers.run()
    bench.member.bond.on_revoked((T0,))
    bench.core.poll(1)
    if comes_back:
        bench.member.bond.on_assigned((T0,))
    bench.member.identity = Identity(4, "member-1")
    bench.brokers.advance(5000)
    with pytest.raises(CommitFailed, match="moved on"):
        committing.value()
    assert len(bench.brokers.asked("OffsetCommit")) == 1


def test_a_stale_epoch_is_committed_again_when_the_newer_one_comes_later(make_group):
    """KIP-848: the coordinator has given the member an epoch, and the heartbeat that tells it is on its way."""
    bench = make_group(enable_auto_commit=False, group_protocol="consumer")
    assigned(bench, T0)
    bench.coordinator.errors = [ErrorCode.STALE_MEMBER_EPOCH] * 3
    committing = spawn(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    bench.brokers.run()
    assert not committing.is_done
    assert bench.member.refused == [(ErrorCode.STALE_MEMBER_EPOCH, Identity(3, "member-1"))]  # so it asks at once
    bench.member.identity = Identity(4, "member-1")
    bench.brokers.advance(4000)
    assert committing.value() is None
    assert bench.brokers.asked("OffsetCommit")[-1].generation_id_or_member_epoch == 4


def test_a_stale_epoch_that_stays_is_a_failed_commit(make_group):
    bench = make_group(enable_auto_commit=False, group_protocol="consumer")
    assigned(bench, T0)
    bench.coordinator.errors = [ErrorCode.STALE_MEMBER_EPOCH] * 100
    committing = spawn(bench.core.offsets.commit({T0: OffsetAndMetadata(7)}, 5000))
    bench.brokers.advance(6000)
    with pytest.raises(CommitFailed, match="moved on"):
        committing.value()


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_the_committed_offset_is_asked_for_again_with_the_newer_epoch(make_group, code):
    bench = make_group(enable_auto_commit=False, group_protocol="consumer")
    bench.logs.append(T0, b"a", b"b")
    bench.coordinator.errors = [code, code]
    assigned(bench, T0)
    assert bench.poll() == []
    assert bench.member.refused[0] == (code, Identity(3, "member-1"))
    bench.member.identity = Identity(4, "member-1")
    bench.brokers.advance(1000)
    assert bench.values() == [b"a", b"b"]
    assert bench.brokers.asked("OffsetFetch")[-1].groups[0].member_epoch == 4


def test_an_auto_commit_that_was_overtaken_while_the_coordinator_was_looked_for_is_not_sent(make_group):
    bench = make_group(auto_commit_interval_ms=1000)
    bench.logs.append(T0, b"a", b"b", b"c", b"d")
    assigned(bench, T0)
    bench.values(3)
    bench.brokers.advance(1000)
    bench.core.coordinators.forget(0, "g")
    not_yet = FindCoordinatorResponse(
        coordinators=[FindCoordinatorResponse.Coordinator(key="g", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    )
    bench.brokers.answer("FindCoordinator", [not_yet, coordinator_is(1), coordinator_is(1)])
    bench.poll(1)  # commits 3, as soon as the coordinator is found
    bench.call(bench.core.offsets.commit({T0: OffsetAndMetadata(1)}, 5000))
    bench.brokers.advance(5000)
    assert committed_offsets(bench) == [1]


@pytest.mark.parametrize("how", ["auto", "later", "waited for"])
def test_a_commit_that_waits_for_its_coordinator_is_not_sent_for_a_partition_that_was_lost(make_group, how):
    bench = make_group(auto_commit_interval_ms=1000)
    bench.logs.append(T0, b"a", b"b", b"c")
    assigned(bench, T0)
    bench.values(3)
    bench.brokers.advance(1000)
    bench.core.coordinators.forget(0, "g")
    not_yet = FindCoordinatorResponse(
        coordinators=[FindCoordinatorResponse.Coordinator(key="g", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    )
    bench.brokers.answer("FindCoordinator", [not_yet, coordinator_is(1), coordinator_is(1)])
    if how == "auto":
        bench.poll(1)
    elif how == "later":
        bench.core.offsets.commit_later(None, None)
    else:
        bench.core.world.start(bench.core.offsets.commit_quietly())
    bench.core.subscription.remove((T0,))
    bench.brokers.advance(5000)
    assert committed_offsets(bench) == []


def test_a_group_without_a_committed_offset_says_in_the_log_where_it_begins(make_group):
    bench = make_group()
    assigned(bench, T0)
    bench.poll()
    assert "no committed offset for clicks-0: begins at earliest (auto.offset.reset)" in [
        line.text for line in bench.brokers.lines
    ]
