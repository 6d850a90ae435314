"""Nodes make themselves known: BrokerRegistration, UnregisterBroker and ControllerRegistration.

A broker that registers with a new incarnation is a new life of it. What the life before led or was in sync with is
taken from it first: if it did not stop cleanly, it may not even have what it had (KIP-966).
"""

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import changes_when_restarted, changes_when_unregistered
from ottla.machines.metadata.image.brokers_image import BrokerRegistration, Endpoint, broker_record
from ottla.machines.metadata.image.directory_ids import is_reserved
from ottla.machines.metadata.image.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    Range,
    has_controller_registration,
    has_directory_assignment,
    register_broker_version,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

NO_EPOCH = -2
"""What a broker that was never registered cannot have as its previous epoch."""


def register_broker(
    context: ControllerContext, request: BrokerRegistrationRequest, now_ms: int
) -> Decision[BrokerRegistrationResponse]:
    """A new life gets as its epoch the offset at which this decision's records begin."""
    error = _check(context, request, now_ms)
    if error is not ErrorCode.NONE:
        return Decision(BrokerRegistrationResponse(error_code=error))
    before = context.image.brokers.by_id.get(request.broker_id)
    is_amended = before is not None and before.incarnation_id == request.incarnation_id
    broker = BrokerRegistration(
        request.broker_id,
        before.epoch if before is not None and is_amended else context.next_offset,
        request.incarnation_id,
        tuple(Endpoint(end.name, end.host, end.port, end.security_protocol) for end in request.listeners),
        tuple((f.name, Range(f.min_supported_version, f.max_supported_version)) for f in request.features),
        request.rack,
        fenced=before.fenced if before is not None and is_amended else True,
        in_controlled_shutdown=before is not None and is_amended and before.in_controlled_shutdown,
        directories=tuple(request.log_dirs),
    )
    records: list[VersionedRecord] = []
    if not is_amended:
        is_clean = request.previous_broker_epoch == (NO_EPOCH if before is None else before.epoch)
        records += changes_when_restarted(context, broker.id, broker.directories, is_clean=is_clean)
    level = context.metadata_version
    records.append(VersionedRecord(broker_record(broker, level), register_broker_version(level)))
    return Decision(BrokerRegistrationResponse(broker_epoch=broker.epoch), records)


def _check(context: ControllerContext, request: BrokerRegistrationRequest, now_ms: int) -> ErrorCode:
    if request.cluster_id != context.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    before = context.image.brokers.by_id.get(request.broker_id)
    if before is not None and before.incarnation_id != request.incarnation_id and _is_alive(context, before, now_ms):
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if request.is_migrating_zk_broker:
        return ErrorCode.BROKER_ID_NOT_REGISTERED
    if has_directory_assignment(context.metadata_version) and not _are_directories_free(context, request):
        return ErrorCode.INVALID_REGISTRATION
    supported = {f.name: Range(f.min_supported_version, f.max_supported_version) for f in request.features}
    if METADATA_VERSION not in supported:
        return ErrorCode.INVALID_REGISTRATION
    finalized = context.image.features.levels | {KRAFT_VERSION: context.kraft_version}
    for name in supported.keys() | finalized.keys():
        if finalized.get(name, 0) not in supported.get(name, Range(0, 0)):
            return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _is_alive(context: ControllerContext, broker: BrokerRegistration, now_ms: int) -> bool:
    """Whether a broker's last life may still run. Of the broker beside this controller we know: it ended with the
    process, unless it was heard of since. So a combined node that was killed is back at once.
    """
    timeout_ms = context.config.integer("broker.session.timeout.ms")
    session = context.sessions.valid(broker.id, broker.epoch, now_ms, timeout_ms)
    return session is not None and (session.is_heard or broker.id != context.node_id)


def _are_directories_free(context: ControllerContext, request: BrokerRegistrationRequest) -> bool:
    """Some, no two the same, none reserved, and none of another broker's."""
    given = set(request.log_dirs)
    if not given or len(given) < len(request.log_dirs) or any(map(is_reserved, given)):
        return False
    others = (broker for broker in context.image.brokers.by_id.values() if broker.id != request.broker_id)
    return not any(given & set(broker.directories) for broker in others)


def unregister_broker(
    context: ControllerContext, request: UnregisterBrokerRequest
) -> Decision[UnregisterBrokerResponse]:
    broker = context.image.brokers.by_id.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        return Decision(UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message))
    records = list(changes_when_unregistered(context, broker.id))
    records.append(VersionedRecord(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch), 0))
    return Decision(UnregisterBrokerResponse(error_message=None), records, atomic=False)


def register_controller(
    context: ControllerContext, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    if not has_controller_registration(context.metadata_version):
        message = "The current MetadataVersion is too old to support controller registrations."
        return Decision(ControllerRegistrationResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message))
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for end in request.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
    )
    return Decision(ControllerRegistrationResponse(error_message=None), [VersionedRecord(record, 0)])
