"""BrokerHeartbeat: from fenced to unfenced, and out again in order (KIP-631).

    FENCED       registered, leads nothing      UNFENCED when it asks and has read its own registration
    UNFENCED     takes part                     FENCED when it asks or falls silent; to stop, one of the next two
    SHUTTING     its leaderships move away      STOPPED when it has none and the others have read about it
    STOPPED      fenced; told to stop

A heartbeat also says which log directories failed, and which take no new replicas.
"""

from enum import Enum, auto

from ottla.base.ids import Uuid
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.broker_sessions import Session
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import changes_when_added, changes_when_removed, leads_something
from ottla.machines.metadata.decisions.broker_epochs import check_broker_epoch
from ottla.machines.metadata.image.brokers_image import ENTER_CONTROLLED_SHUTDOWN, FENCE, UNFENCE, BrokerRegistration
from ottla.machines.metadata.image.features import has_cordoned_directories, has_directory_assignment
from ottla.wire.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationChangeRecord


class BrokerState(Enum):
    FENCED = auto()
    UNFENCED = auto()
    SHUTTING = auto()
    STOPPED = auto()


def heartbeat(
    context: ControllerContext, request: BrokerHeartbeatRequest, now_ms: int
) -> Decision[BrokerHeartbeatResponse]:
    stale = check_broker_epoch(context, request.broker_id, request.broker_epoch)
    if stale is not None:
        return Decision(BrokerHeartbeatResponse(error_code=stale.code))
    broker = context.image.brokers.by_id[request.broker_id]
    session = context.sessions.touch(broker.id, broker.epoch, now_ms, request.current_metadata_offset)
    state = _state(broker)
    after = _next_state(context, broker, session, request)
    records = [] if after is state else _records(context, broker, after)
    if after is BrokerState.SHUTTING and session.shutdown_offset < 0:
        session.shutdown_offset = context.next_offset + len(records) - 1
    if after is BrokerState.STOPPED:
        context.sessions.end(broker.id)
    # A failed directory is reported again with every heartbeat, so it can wait for one that changes nothing else.
    if not records and has_directory_assignment(context.metadata_version):
        records += _records_of_failed_directories(context, broker, set(request.offline_log_dirs))
    if has_cordoned_directories(context.metadata_version):
        records += _records_of_cordoned_directories(broker, request)
    reply = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=after in (BrokerState.FENCED, BrokerState.STOPPED),
        should_shut_down=after is BrokerState.STOPPED,
    )
    return Decision(reply, records, atomic=False)


def fence_silent_broker(context: ControllerContext, now_ms: int) -> Decision[bool]:
    """Fences one broker whose session ran out; True if there was one, and so may be more.

    One at a time, as the leader after the second depends on what followed from the first. A broker that this controller
    has not heard of yet starts a session.
    """
    timeout_ms = context.config.integer("broker.session.timeout.ms")
    unfenced = [broker for broker in context.image.brokers.by_id.values() if not broker.fenced]
    for broker in unfenced:
        context.sessions.expect(broker.id, broker.epoch, now_ms)
    for broker in unfenced:
        if context.sessions.valid(broker.id, broker.epoch, now_ms, timeout_ms) is None:
            return Decision(True, _records(context, broker, BrokerState.FENCED), atomic=False)
    return Decision(False)


def fence_lost_broker(context: ControllerContext, broker_id: int, epoch: int) -> Decision[bool]:
    """Fences a broker whose process has ended, without waiting for its session; False if it is in another life, or
    fenced already."""
    broker = context.image.brokers.by_id.get(broker_id)
    if broker is None or broker.epoch != epoch or broker.fenced:
        return Decision(False)
    context.sessions.end(broker_id)
    return Decision(True, _records(context, broker, BrokerState.FENCED), atomic=False)


def _state(broker: BrokerRegistration) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.SHUTTING if broker.in_controlled_shutdown else BrokerState.UNFENCED


def _next_state(
    context: ControllerContext, broker: BrokerRegistration, session: Session, request: BrokerHeartbeatRequest
) -> BrokerState:
    match _state(broker):
        case BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.STOPPED
            is_caught_up = request.current_metadata_offset >= broker.epoch
            return BrokerState.UNFENCED if is_caught_up and not request.want_fence else BrokerState.FENCED
        case BrokerState.UNFENCED:
            if not request.want_shut_down:
                return BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED
            if request.want_fence or not leads_something(context, broker.id):
                return BrokerState.STOPPED
            return BrokerState.SHUTTING
    if leads_something(context, broker.id) or session.shutdown_offset > _lowest_active_offset(context):
        return BrokerState.SHUTTING
    return BrokerState.STOPPED


def _lowest_active_offset(context: ControllerContext) -> float:
    """How far every active broker has read the log; no limit if there is none."""
    sessions = context.sessions.by_broker
    return min((sessions[id].metadata_offset for id in sessions if context.is_active(id)), default=float("inf"))


def _records(context: ControllerContext, broker: BrokerRegistration, state: BrokerState) -> list[VersionedRecord]:
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    match state:
        case BrokerState.UNFENCED:
            change.fenced = UNFENCE
            return [VersionedRecord(change, 0), *changes_when_added(context, broker.id)]
        case BrokerState.SHUTTING:
            change.in_controlled_shutdown = ENTER_CONTROLLED_SHUTDOWN
            return [VersionedRecord(change, 1), *changes_when_removed(context, broker.id)]
    change.fenced = FENCE
    return [*changes_when_removed(context, broker.id), VersionedRecord(change, 0)]


def _records_of_failed_directories(
    context: ControllerContext, broker: BrokerRegistration, failed: set[Uuid]
) -> list[VersionedRecord]:
    newly_failed = failed & set(broker.directories)
    if not newly_failed:
        return []
    affected = [located for located in context.partitions() if located[3].directory(broker.id) in newly_failed]
    left = tuple(directory for directory in broker.directories if directory not in failed)
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left)
    return [*changes_when_removed(context, broker.id, affected), VersionedRecord(change, 2)]


def _records_of_cordoned_directories(
    broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[VersionedRecord]:
    cordoned = request.cordoned_log_dirs
    if cordoned is None or (
        broker.cordoned_directories is not None and set(cordoned) == set(broker.cordoned_directories)
    ):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
    )
    return [VersionedRecord(change, 3)]
