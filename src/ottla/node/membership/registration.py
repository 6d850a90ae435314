"""How a broker joins its cluster, stays in it and leaves: registration, heartbeats, controlled shutdown (KIP-631).

A broker registers, which gives it an epoch; reads the metadata up to that epoch; and asks to be unfenced. One heartbeat
is under way at a time, and the next one is due an interval after the last one began. To leave it asks until the
controller says that it may go, or until that has taken too long or no controller answers any more: then the others find
out by its silence.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid
from ottla.base.ports import Timer, Timers
from ottla.broker.broker import Broker
from ottla.broker.cluster.cluster_metadata import NodeIdentity
from ottla.machines.metadata.image.features import NOT_SUPPORTED, SERVED
from ottla.node.listeners import Endpoint
from ottla.node.membership.controller_registration import features_as, listeners_as
from ottla.runtime.apart import ask_as_node
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

# Why a controller does not take a broker: its error, with the setting that a person would look at.


def reason_of(error: ErrorCode, identity: NodeIdentity) -> str:
    match error:
        case ErrorCode.INCONSISTENT_CLUSTER_ID:
            why = f"it is of another cluster than this node's log.dirs, whose cluster.id is {identity.cluster_id}"
        case ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            why = f"another broker with node.id={identity.node_id} is up, or was until a moment ago"
        case ErrorCode.INVALID_REGISTRATION:
            why = "another broker has a directory.id of this node's log.dirs: one is a copy of the other"
        case ErrorCode.UNSUPPORTED_VERSION:
            why = "the cluster uses a feature that this broker does not have (kafka-features describe)"
        case ErrorCode.RECORD_LIST_TOO_LARGE:
            why = "what it tells of itself is more than the metadata log takes; it has too many listeners or log.dirs"
        case _:
            return error.name
    return f"{why} ({error.name})"


# Log directories that have failed, until the controller knows of them (KIP-858).
#
# The controller gives the partitions of such a directory other leaders, so a broker that cannot tell it must not
# continue: its clients would wait for partitions that nobody serves. After `log.dir.failure.timeout.ms` it ends, and
# the others find out by its silence.


class FailedDirectories:
    """Of one life of a broker. `give_up` is called with the reason why, when the time for a directory is over."""

    def __init__(self, timers: Timers, timeout_ms: int, give_up: Callable[[str], None]) -> None:
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._give_up = give_up
        self._waiting: dict[Uuid, Timer] = {}
        self.ids: list[Uuid] = []
        """Every heartbeat names them."""

    def add(self, path: str, directory_id: Uuid) -> bool:
        """False if it has failed before."""
        if directory_id in self.ids:
            return False
        self.ids.append(directory_id)
        self._waiting[directory_id] = self._timers.after(self._timeout_ms / 1000, lambda: self._on_timeout(path))
        return True

    def on_reported(self, directory_ids: Iterable[Uuid]) -> None:
        """The controller has answered a heartbeat that named these."""
        for directory_id in directory_ids:
            if directory_id in self._waiting:
                self._waiting.pop(directory_id).cancel()

    def close(self) -> None:
        """The broker leaves: nothing is to be reported any more."""
        self.on_reported(list(self._waiting))

    def _on_timeout(self, path: str) -> None:
        self._give_up(
            f"{path} has failed, and the controller could not be informed for {self._timeout_ms} ms "
            "(log.dir.failure.timeout.ms)"
        )


_log = logging.getLogger(__name__)
_REGISTER_AGAIN_S: Final = 0.5
_LOOK_AGAIN_S: Final = 0.005
_UNFENCE_AGAIN_S: Final = 0.05
_LEAVE_AGAIN_S: Final = 0.05
_LEAVE_S: Final = 10.0
_NEVER: Final = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
)
"""What no controller of this cluster would answer otherwise."""
_NOT_A_MEMBER: Final = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


class CannotJoin(StorageError):
    """The controller does not take this broker: its directories do not fit the cluster's metadata."""


class Membership:
    """One life of a broker in the cluster. `failed` is called with the reason why it cannot continue."""

    def __init__(
        self,
        broker: Broker,
        endpoints: Sequence[Endpoint],
        *,
        incarnation_id: Uuid,
        previous_broker_epoch: int,
        committed_offset: Callable[[], int],
        failed: Callable[[str], None],
    ) -> None:
        self._broker = broker
        self._timers = broker.world.timers
        self._endpoints = endpoints
        self._incarnation_id = incarnation_id
        self._previous_broker_epoch = previous_broker_epoch
        self._committed_offset = committed_offset
        self._heartbeats: Timer | None = None
        self._is_asking = False
        self._is_ready = False
        self.answered_s = self._timers.now_s()
        """When a heartbeat was last answered; `is_fenced` is what it said."""
        self.is_fenced = True
        self._refusals: set[ErrorCode] = set()
        self._heartbeat_log = RateLimitedLog(_log, broker.world.timers.now_s)
        self._failed_directories = FailedDirectories(
            broker.world.timers, broker.config.integer("log.dir.failure.timeout.ms"), failed
        )

    def register(self, then: Callable[[None], None], failed: Callable[[Exception], None]) -> None:
        """Registers as a new life of this broker, fenced; `then` is called when the metadata here has that in it.

        Before that the metadata are of the life before, whose leaderships may be another's by now. `failed` is called
        when the controller will not have this broker.
        """
        request = BrokerRegistrationRequest(
            broker_id=self._broker.identity.node_id,
            cluster_id=self._broker.identity.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=listeners_as(BrokerRegistrationRequest.Listener, self._endpoints),
            features=features_as(BrokerRegistrationRequest.Feature),
            rack=self._rack(),
            log_dirs=list(self._broker.identity.directory_ids.values()),
            previous_broker_epoch=self._previous_broker_epoch,
        )
        timeout_s = self._broker.config.integer("initial.broker.registration.timeout.ms") / 1000
        self._register(request, self._timers.now_s() + timeout_s, then, failed)

    def _register(
        self,
        request: BrokerRegistrationRequest,
        until_s: float,
        then: Callable[[None], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Asks again, of whichever controller is active then, unless none would ever take this broker.

        One may refuse because the life before this one seems to run still, or because its disk fails while it answers.
        """

        def on_reply(reply: BrokerRegistrationResponse) -> None:
            if reply.error_code and self._is_passing(ErrorCode(reply.error_code), until_s):
                self._on_refused_for_now(ErrorCode(reply.error_code))
                again()
            else:
                self._on_registered(reply, then, failed)

        def on_failed(error: ErrorCode) -> None:
            if self._is_passing(error, until_s):
                again()
            else:
                why = reason_of(error, self._broker.identity)
                failed(CannotJoin(f"the broker cannot register: {why}"))

        def again() -> None:
            self._timers.after(_REGISTER_AGAIN_S, lambda: self._register(request, until_s, then, failed))

        ask_as_node(self._timers, self._broker.controller, request, on_reply, on_failed)

    def _on_refused_for_now(self, error: ErrorCode) -> None:
        if error not in self._refusals:
            self._refusals.add(error)
            _log.warning(
                "the controller refused to register this broker, which tries again: %s",
                reason_of(error, self._broker.identity),
            )

    def _is_passing(self, error: ErrorCode, until_s: float) -> bool:
        return error not in _NEVER and self._timers.now_s() < until_s

    def _rack(self) -> str | None:
        rack = self._broker.config["broker.rack"]
        return str(rack) if rack is not None else None

    def _on_registered(
        self, reply: BrokerRegistrationResponse, then: Callable[[None], None], failed: Callable[[Exception], None]
    ) -> None:
        if reply.error_code:
            error = ErrorCode(reply.error_code)
            why = reason_of(error, self._broker.identity)
            if error is ErrorCode.UNSUPPORTED_VERSION:
                why += self._unserved_features()
            failed(CannotJoin(f"the controller refuses broker {self._broker.identity.node_id}: {why}"))
            return
        self._broker.identity.broker_epoch = reply.broker_epoch
        interval_s = self._broker.config.integer("broker.heartbeat.interval.ms") / 1000
        self._heartbeats = self._timers.every(interval_s, lambda: self._beat(lambda _: None))
        self._wait_for_registration(then)

    def _unserved_features(self) -> str:
        """Those that the cluster uses, as far as this node has heard, and what to do about them."""
        levels = self._broker.metadata.image.features.levels
        unserved = sorted(name for name, level in levels.items() if level not in SERVED.get(name, NOT_SUPPORTED))
        if not unserved:
            return ""
        shown = ", ".join(f"{name}={levels[name]}" for name in unserved)
        options = " ".join(f"--feature {name}" for name in unserved)
        return f"; the cluster uses {shown}, which this version lacks: `kafka-features disable {options}` first"

    def _wait_for_registration(self, then: Callable[[None], None]) -> None:
        """The epoch is the offset at which the registration begins. A large one, with what it takes from the life
        before, is a transaction of several batches (KIP-868): it is not known before that has ended.
        """
        is_here = self._committed_offset() > self._broker.identity.broker_epoch
        if not is_here or self._broker.metadata.image.in_transaction:
            self._timers.after(_LOOK_AGAIN_S, lambda: self._wait_for_registration(then))
        else:
            then(None)

    def unfence(self, then: Callable[[None], None], _failed: Callable[[Exception], None]) -> None:
        """Asks until clients may be sent here: the broker has applied the metadata of its partitions."""
        self._is_ready = True

        def again(_: object = None) -> None:
            self._timers.after(_UNFENCE_AGAIN_S, lambda: self.unfence(then, _failed))

        def on_reply(reply: BrokerHeartbeatResponse) -> None:
            if reply.error_code or reply.is_fenced:
                again()
            else:
                then(None)

        self._beat(on_reply, again)

    def _beat(
        self,
        then: Callable[[BrokerHeartbeatResponse], None],
        failed: Callable[[ErrorCode], object] | None = None,
        *,
        want_shut_down: bool = False,
    ) -> None:
        """Without `failed` it is one of many, and is left out while another is under way."""
        if self._is_asking and failed is None:
            return
        self._is_asking = True
        request = BrokerHeartbeatRequest(
            broker_id=self._broker.identity.node_id,
            broker_epoch=self._broker.identity.broker_epoch,
            current_metadata_offset=self._committed_offset() - 1,
            want_fence=not self._is_ready,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._failed_directories.ids),
            cordoned_log_dirs=self._cordoned_directories(),
        )

        def on_reply(reply: BrokerHeartbeatResponse) -> None:
            self._is_asking = False
            if reply.error_code:
                self._on_heartbeat_failed(ErrorCode(reply.error_code))
            else:
                self.answered_s, self.is_fenced = self._timers.now_s(), reply.is_fenced
                self._failed_directories.on_reported(request.offline_log_dirs)
            then(reply)

        def on_failed(error: ErrorCode) -> None:
            self._is_asking = False
            self._on_heartbeat_failed(error)
            if failed is not None:
                failed(error)

        ask_as_node(self._timers, self._broker.controller, request, on_reply, on_failed)

    def _cordoned_directories(self) -> list[Uuid] | None:
        """Directories that are to get no new replicas (KIP-1066); None if there are none to report."""
        settings = self._broker.node_settings
        cordoned = [
            directory_id
            for path, directory_id in self._broker.identity.directory_ids.items()
            if settings.is_cordoned(path)
        ]
        known = self._broker.metadata.image.brokers.by_id.get(self._broker.identity.node_id)
        return cordoned if cordoned or (known is not None and known.cordoned_directories) else None

    def _on_heartbeat_failed(self, error: ErrorCode) -> None:
        """One that is no member stays none: UnregisterBroker takes out a broker that lives, too, as in Apache Kafka,
        and only a new life registers again. It serves what others still ask of it, and says what to do.
        """
        if error in _NOT_A_MEMBER:
            self._heartbeat_log.warning(
                "the controller refused a heartbeat: %s. Broker %d of epoch %d is not registered any more: it was "
                "unregistered, or another process has its node.id. Restart it to have it register again",
                error.name,
                self._broker.identity.node_id,
                self._broker.identity.broker_epoch,
            )
        else:
            self._heartbeat_log.warning("the controller refused a heartbeat: %s", error.name)

    def on_directory_failed(self, path: str) -> None:
        """Tells the controller that a log directory is gone, and the replicas in it with it (KIP-858)."""
        directory_id = self._broker.identity.directory_ids.get(path)
        if directory_id is not None and self._failed_directories.add(path, directory_id):
            self._beat(lambda _: None)

    def leave(self, then: Callable[[], None]) -> None:
        """Asks to shut down; `then` is called when the controller has moved what this broker led.

        Or when no controller has answered for as long as the quorum needs to elect another, as when the last nodes of
        a cluster stop; or when that takes too long.
        """
        if self._heartbeats is None:
            then()
            return
        self._heartbeats.cancel()
        self._heartbeats = None
        self._failed_directories.close()
        if not self._broker.config["controlled.shutdown.enable"]:
            then()
            return
        is_over: list[bool] = []

        def end() -> None:
            if not is_over:
                is_over.append(True)
                silence.cancel()
                too_long.cancel()
                then()

        def end_without_leave(why: str) -> None:
            _log.warning(
                "stopping without a controlled shutdown: %s; the controller fences this broker when its session ends",
                why,
            )
            end()

        def listen() -> Timer:
            return self._timers.after(
                self._silence_s(), lambda: end_without_leave(f"no controller has answered for {self._silence_s():g} s")
            )

        silence = listen()

        def ask() -> None:
            if not is_over:
                self._beat(on_reply, lambda _: again(), want_shut_down=True)

        def again() -> None:
            if not is_over:
                self._timers.after(_LEAVE_AGAIN_S, ask)

        def on_reply(reply: BrokerHeartbeatResponse) -> None:
            nonlocal silence
            if is_over:
                return
            silence.cancel()
            silence = listen()
            if reply.should_shut_down or reply.error_code in _NOT_A_MEMBER:
                end()
            else:
                again()

        too_long = self._timers.after(
            _LEAVE_S, lambda: end_without_leave(f"what it leads was not moved within {_LEAVE_S:g} s")
        )
        ask()

    def _silence_s(self) -> float:
        config = self._broker.config
        fetch_ms = config.integer("controller.quorum.fetch.timeout.ms")
        return (fetch_ms + config.integer("controller.quorum.election.timeout.ms")) / 1000
