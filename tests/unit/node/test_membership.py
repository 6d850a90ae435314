"""A broker's life in the cluster (KIP-631), with a controller that notes what it is asked."""

from types import SimpleNamespace

import pytest

from ottla.broker.cluster.cluster_metadata import NodeIdentity
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.listeners import Endpoint
from ottla.node.membership.registration import CannotJoin, Membership
from ottla.serving.node_settings import NodeSettings
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    BeginTransactionRecord,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    EndTransactionRecord,
)
from tests.unit.broker.brokers import over_the_wire

BROKER_EPOCH = 42
INTERVAL_MS = 2000  # broker.heartbeat.interval.ms, as it is by default
DIRECTORIES = {"/a": b"a" * 16, "/b": b"b" * 16}


class NotingController:
    """Takes everything, unless told to answer with an error, or to be away."""

    def __init__(self):
        self.registrations, self.heartbeats = [], []
        self.error = ErrorCode.NONE
        self.is_away = False
        self.keeps_fenced = False
        self.keeps = 0

    def ask(self, request, version, caller, then, failed):
        request = over_the_wire(request, version)
        if self.is_away:
            failed(ErrorCode.NOT_CONTROLLER)
        elif isinstance(request, BrokerRegistrationRequest):
            self.registrations.append(request)
            then(BrokerRegistrationResponse(error_code=self.error, broker_epoch=BROKER_EPOCH))
        else:
            self.heartbeats.append(request)
            self.keeps -= request.want_shut_down
            then(
                BrokerHeartbeatResponse(
                    error_code=self.error,
                    is_fenced=self.keeps_fenced,
                    should_shut_down=request.want_shut_down and self.keeps < 0,
                )
            )


class Scene:
    def __init__(self, **settings: str):
        required = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
        given = {key.replace("_", "."): value for key, value in settings.items()}
        self.controller, self.timers = NotingController(), StepTimers(FixedClock())
        config = parse(Scope.BROKER, {**required, **given}).values
        self.broker = SimpleNamespace(
            identity=NodeIdentity(1, "the-cluster", directory_ids=DIRECTORIES),
            config=config,
            node_settings=NodeSettings(1, config),
            controller=self.controller,
            world=SimpleNamespace(timers=self.timers),
            metadata=SimpleNamespace(image=MetadataImage()),
        )
        self.events: list[object] = []
        self.committed_offset = 100
        self.membership = Membership(
            self.broker,
            [Endpoint("PLAINTEXT", "here", 9092, "PLAINTEXT"), Endpoint("SSL", "there", 9093, "SSL")],
            incarnation_id=b"i" * 16,
            previous_broker_epoch=7,
            committed_offset=lambda: self.committed_offset,
            failed=self.events.append,
        )

    def join(self):
        self.membership.register(
            lambda _: self.membership.unfence(lambda _: self.events.append("joined"), self.events.append),
            self.events.append,
        )
        return self


def test_a_broker_registers_with_what_others_must_know():
    scene = Scene(broker_rack="r1").join()
    (request,) = scene.controller.registrations
    assert (request.broker_id, request.cluster_id, request.incarnation_id) == (1, "the-cluster", b"i" * 16)
    assert (request.rack, request.previous_broker_epoch) == ("r1", 7)
    assert list(request.log_dirs) == list(DIRECTORIES.values())
    listeners = [(one.name, one.host, one.port, one.security_protocol) for one in request.listeners]
    assert listeners == [("PLAINTEXT", "here", 9092, 0), ("SSL", "there", 9093, 1)]
    supported = {one.name: (one.min_supported_version, one.max_supported_version) for one in request.features}
    assert supported["metadata.version"] == (7, 30)


def test_it_has_joined_when_a_first_heartbeat_is_answered():
    scene = Scene().join()
    assert scene.events == ["joined"]
    assert scene.broker.identity.broker_epoch == BROKER_EPOCH
    (first,) = scene.controller.heartbeats
    assert (first.broker_epoch, first.want_fence, first.want_shut_down) == (BROKER_EPOCH, False, False)
    assert first.current_metadata_offset == 99


def test_it_goes_on_to_beat():
    scene = Scene(broker_heartbeat_interval_ms="500").join()
    scene.committed_offset = 200
    scene.timers.advance(500)
    assert [beat.current_metadata_offset for beat in scene.controller.heartbeats] == [99, 199]


def test_a_heartbeat_that_is_lost_is_no_end(caplog):
    scene = Scene().join()
    scene.controller.is_away = True
    scene.timers.advance(INTERVAL_MS)
    assert "NOT_CONTROLLER" in caplog.text
    scene.controller.is_away = False
    scene.timers.advance(INTERVAL_MS)
    assert len(scene.controller.heartbeats) == 2


@pytest.mark.parametrize("error", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED])
def test_a_broker_that_was_unregistered_while_it_lived_stays_out_and_says_what_to_do(caplog, error):
    """As Apache Kafka 4.3.1: it beats on, is refused each time, and only a new life registers again."""
    scene = Scene().join()
    scene.controller.error = error
    scene.timers.advance(10 * INTERVAL_MS)
    assert (len(scene.controller.heartbeats), len(scene.controller.registrations)) == (11, 1)
    assert scene.events == ["joined"], "it does not stop by itself"
    assert "is not registered any more" in caplog.text
    assert "Restart it" in caplog.text


def test_a_failed_directory_is_told_at_once_and_ever_after():
    scene = Scene().join()
    scene.membership.on_directory_failed("/b")
    scene.membership.on_directory_failed("/b")
    scene.membership.on_directory_failed("/nobodys")
    scene.timers.advance(INTERVAL_MS)
    assert [list(beat.offline_log_dirs) for beat in scene.controller.heartbeats] == [[], [b"b" * 16], [b"b" * 16]]


def test_cordoned_directories_are_told_and_that_they_are_so_no_more():
    """KIP-1066: the controller puts no new replica there. A controller that knows of none need not be told."""
    scene = Scene().join()
    told = lambda: scene.controller.heartbeats[-1].cordoned_log_dirs  # noqa: E731  (what was told last)
    assert told() is None
    for value, expected in (("/b", [b"b" * 16]), ("*", [b"a" * 16, b"b" * 16])):
        scene.broker.node_settings = Scene(cordoned_log_dirs=value).broker.node_settings
        scene.timers.advance(INTERVAL_MS)
        assert list(told()) == expected
    scene.broker.node_settings = Scene().broker.node_settings
    known = SimpleNamespace(cordoned_directories=(b"a" * 16,))
    scene.broker.metadata = SimpleNamespace(image=SimpleNamespace(brokers=SimpleNamespace(by_id={1: known})))
    scene.timers.advance(INTERVAL_MS)
    assert list(told()) == []


def test_a_broker_that_cannot_tell_of_a_failed_directory_ends():
    scene = Scene(log_dir_failure_timeout_ms="9000").join()
    scene.controller.is_away = True
    scene.membership.on_directory_failed("/b")
    scene.timers.advance(8_990)
    assert scene.events == ["joined"]
    scene.timers.advance(20)
    (problem,) = scene.events[1:]
    assert problem == "/b has failed, and the controller could not be informed for 9000 ms (log.dir.failure.timeout.ms)"


def test_a_broker_goes_on_when_a_later_heartbeat_tells_of_its_failed_directory():
    scene = Scene(log_dir_failure_timeout_ms="9000").join()
    scene.controller.is_away = True
    scene.membership.on_directory_failed("/b")
    scene.timers.advance(INTERVAL_MS)
    scene.controller.is_away = False
    scene.timers.advance(20_000)
    assert scene.events == ["joined"]


def test_a_broker_that_leaves_asks_to_and_beats_no_more():
    scene = Scene().join()
    scene.membership.leave(lambda: scene.events.append("left"))
    assert scene.events == ["joined", "left"]
    assert scene.controller.heartbeats[-1].want_shut_down
    assert len(scene.timers) == 0


def test_a_broker_that_is_fenced_has_not_joined_and_asks_again():
    scene = Scene()
    scene.controller.keeps_fenced = True
    scene.join()
    scene.timers.advance(1000)
    assert scene.events == []
    scene.controller.keeps_fenced = False
    scene.timers.advance(100)
    assert scene.events == ["joined"]


def test_a_broker_reads_its_own_registration_before_it_asks_to_be_unfenced():
    scene = Scene()
    scene.committed_offset = BROKER_EPOCH
    scene.join()
    scene.timers.advance(1000)
    assert scene.controller.heartbeats == []
    scene.committed_offset = BROKER_EPOCH + 1
    scene.timers.advance(100)
    assert scene.events == ["joined"]


def test_a_broker_asks_to_leave_until_it_may():
    scene = Scene().join()
    scene.controller.keeps = 3
    scene.membership.leave(lambda: scene.events.append("left"))
    assert scene.events == ["joined"]
    scene.timers.advance(1000)
    assert scene.events == ["joined", "left"]
    assert len(scene.controller.heartbeats) == 5


def test_a_broker_whose_controllers_are_all_gone_leaves_when_no_other_can_have_been_elected(caplog):
    """After controller.quorum.fetch.timeout.ms and controller.quorum.election.timeout.ms."""
    scene = Scene().join()
    scene.controller.is_away = True
    scene.membership.leave(lambda: scene.events.append("left"))
    scene.timers.advance(2_990)
    assert scene.events == ["joined"]
    scene.timers.advance(20)
    assert scene.events == ["joined", "left"]
    assert "no controller has answered for 3 s" in caplog.text
    assert len(scene.timers) == 0


def test_a_broker_without_controlled_shutdown_just_leaves():
    scene = Scene(controlled_shutdown_enable="false").join()
    scene.membership.leave(lambda: scene.events.append("left"))
    assert scene.events == ["joined", "left"]
    assert not any(beat.want_shut_down for beat in scene.controller.heartbeats)
    assert len(scene.timers) == 0


def test_a_broker_that_is_kept_for_long_leaves_in_the_end(caplog):
    scene = Scene().join()
    scene.controller.keeps = 1_000_000
    scene.membership.leave(lambda: scene.events.append("left"))
    scene.timers.advance(9_990)
    assert scene.events == ["joined"]
    scene.timers.advance(20)
    assert scene.events == ["joined", "left"]
    assert "not moved within 10 s" in caplog.text


@pytest.mark.parametrize(
    "error", [ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode.KAFKA_STORAGE_ERROR], ids=lambda error: error.name
)
def test_a_broker_that_is_refused_for_now_registers_again(error):
    """Its life before seems to go on, or the disk of the controller failed while it answered."""
    scene = Scene()
    scene.controller.error = error
    scene.join()
    scene.timers.advance(3000)
    assert scene.events == []
    scene.controller.error = ErrorCode.NONE
    scene.timers.advance(1000)
    assert scene.events == ["joined"]


def test_a_broker_says_at_once_why_it_is_refused_for_now(caplog):
    scene = Scene(initial_broker_registration_timeout_ms="5000")
    scene.controller.error = ErrorCode.DUPLICATE_BROKER_REGISTRATION
    scene.join()
    scene.timers.advance(4000)
    assert caplog.text.count("another broker with node.id=1 is up") == 1
    scene.timers.advance(2000)
    (problem,) = scene.events
    assert str(problem).startswith("the controller refuses broker 1: another broker with node.id=1 is up")


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "log.dirs, whose cluster.id is the-cluster"),
        (ErrorCode.INVALID_REGISTRATION, "a directory.id of this node's log.dirs"),
        (ErrorCode.UNSUPPORTED_VERSION, "kafka-features describe"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_broker_that_is_never_taken_names_the_setting(error, setting):
    scene = Scene()
    scene.controller.error = error
    scene.join()
    (problem,) = scene.events
    assert setting in str(problem)
    assert error.name in str(problem)


def test_a_broker_that_does_not_serve_a_feature_of_the_cluster_says_how_to_switch_it_off():
    scene = Scene()
    scene.broker.metadata.image.features.levels.update({"metadata.version": 30, "share.version": 1})
    scene.controller.error = ErrorCode.UNSUPPORTED_VERSION
    scene.join()
    (problem,) = scene.events
    assert "the cluster uses share.version=1, which this version lacks" in str(problem)
    assert "`kafka-features disable --feature share.version` first" in str(problem)


def test_one_that_never_joined_just_leaves():
    scene = Scene()
    scene.membership.leave(lambda: scene.events.append("left"))
    assert scene.events == ["left"]
    assert scene.controller.heartbeats == []


@pytest.mark.parametrize("is_away", [False, True])
def test_one_that_is_not_taken_says_why(is_away):
    scene = Scene()
    scene.controller.error, scene.controller.is_away = ErrorCode.INCONSISTENT_CLUSTER_ID, is_away
    scene.join()
    scene.timers.advance(61_000 if is_away else 0)  # initial.broker.registration.timeout.ms
    (problem,) = scene.events
    assert isinstance(problem, CannotJoin)
    assert ("NOT_CONTROLLER" if is_away else "INCONSISTENT_CLUSTER_ID") in str(problem)
    assert len(scene.timers) == 0


def test_a_broker_that_has_not_taken_up_its_partitions_asks_to_stay_fenced():
    scene = Scene(broker_heartbeat_interval_ms="500")
    scene.membership.register(lambda _: scene.events.append("registered"), scene.events.append)
    scene.timers.advance(500)
    assert scene.events == ["registered"]
    assert [beat.want_fence for beat in scene.controller.heartbeats] == [True]
    scene.membership.unfence(lambda _: scene.events.append("joined"), scene.events.append)
    assert scene.events == ["registered", "joined"]
    assert scene.controller.heartbeats[-1].want_fence is False


def test_a_registration_of_several_batches_is_known_when_the_last_is_here():
    """By what is committed before that, this broker may still lead what it led in its last life."""
    scene = Scene()
    image = scene.broker.metadata.image
    image.replay(BeginTransactionRecord(name="Large decision"))
    scene.committed_offset = BROKER_EPOCH + 1
    scene.join()
    scene.timers.advance(1000)
    assert scene.events == []
    image.replay(EndTransactionRecord())
    scene.timers.advance(1000)
    assert scene.events == ["joined"]


def test_a_broker_with_more_to_tell_than_the_metadata_log_takes_says_so_and_stops():
    scene = Scene()
    scene.controller.error = ErrorCode.RECORD_LIST_TOO_LARGE
    scene.join()
    (problem,) = scene.events
    assert isinstance(problem, CannotJoin)
    assert "too many listeners or log.dirs (RECORD_LIST_TOO_LARGE)" in str(problem)
    assert len(scene.controller.registrations) == 1
