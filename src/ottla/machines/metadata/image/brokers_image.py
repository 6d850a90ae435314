"""Who is in the cluster: brokers and controllers, as they registered, and whether brokers are fenced.

A registered broker starts fenced: it is known, and gets no partitions to lead until it has caught up with the metadata
log. Its `epoch` is the offset of its registration; records that name another are about an earlier life of it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.features import Range, has_cordoned_directories, has_directory_assignment
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError
from ottla.wire.messages import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

FENCE = 1
UNFENCE = -1
ENTER_CONTROLLED_SHUTDOWN = 1
"""What a BrokerRegistrationChangeRecord says; 0 is no change. A shutdown is left only by registering anew."""


class Endpoint(NamedTuple):
    """Where a node is reached, by which listener."""

    listener: str
    host: str
    port: int
    security_protocol: int


class BrokerRegistration(NamedTuple):
    """A broker as it registered last, and what has become of it since."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, Range], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    directories: tuple[Uuid, ...] = ()
    """The log directories that work."""
    cordoned_directories: tuple[Uuid, ...] | None = None
    """Those that take no new replicas (KIP-1066); None until the broker has said."""

    @property
    def is_active(self) -> bool:
        """May lead, and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class ControllerRegistration(NamedTuple):
    """A controller as it registered last (KIP-919)."""

    id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, Range], ...] = ()
    zk_migration_ready: bool = False


class BrokersImage:
    __slots__ = ("by_id", "controllers")

    def __init__(self) -> None:
        self.by_id: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, ControllerRegistration] = {}

    def replay_register(self, record: RegisterBrokerRecord, delta: MetadataDelta) -> None:
        delta.brokers.add(record.broker_id)
        self.by_id[record.broker_id] = BrokerRegistration(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            tuple(Endpoint(end.name, end.host, end.port, end.security_protocol) for end in record.end_points),
            _ranges(record.features),
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            record.is_migrating_zk_broker,
            tuple(record.log_dirs),
            None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )

    def replay_unregister(self, record: UnregisterBrokerRecord, delta: MetadataDelta) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        delta.brokers.add(record.broker_id)
        del self.by_id[record.broker_id]

    def replay_fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord, delta: MetadataDelta) -> None:
        broker = self._broker(record.id, record.epoch)
        delta.brokers.add(broker.id)
        self.by_id[broker.id] = broker._replace(fenced=isinstance(record, FenceBrokerRecord))

    def replay_change(self, record: BrokerRegistrationChangeRecord, delta: MetadataDelta) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        delta.brokers.add(broker.id)
        self.by_id[broker.id] = broker._replace(
            fenced=record.fenced == FENCE if record.fenced else broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown
            or record.in_controlled_shutdown == ENTER_CONTROLLED_SHUTDOWN,
            directories=tuple(record.log_dirs) or broker.directories,
            cordoned_directories=broker.cordoned_directories if cordoned is None else tuple(cordoned),
        )

    def replay_controller(self, record: RegisterControllerRecord, delta: MetadataDelta) -> None:
        delta.controllers.add(record.controller_id)
        self.controllers[record.controller_id] = ControllerRegistration(
            record.controller_id,
            record.incarnation_id,
            tuple(Endpoint(end.name, end.host, end.port, end.security_protocol) for end in record.end_points),
            _ranges(record.features),
            record.zk_migration_ready,
        )

    def records(self, metadata_version: int) -> Iterator[RegisterBrokerRecord]:
        for broker in self.by_id.values():
            yield broker_record(broker, metadata_version)

    def controller_records(self) -> Iterator[RegisterControllerRecord]:
        for controller in self.controllers.values():
            yield RegisterControllerRecord(
                controller_id=controller.id,
                incarnation_id=controller.incarnation_id,
                zk_migration_ready=controller.zk_migration_ready,
                end_points=[
                    RegisterControllerRecord.ControllerEndpoint(
                        name=end.listener, host=end.host, port=end.port, security_protocol=end.security_protocol
                    )
                    for end in controller.endpoints
                ],
                features=[
                    RegisterControllerRecord.ControllerFeature(
                        name=name, min_supported_version=supported.lowest, max_supported_version=supported.highest
                    )
                    for name, supported in controller.features
                ],
            )

    def copy(self) -> "BrokersImage":
        copied = BrokersImage()
        copied.by_id = dict(self.by_id)
        copied.controllers = dict(self.controllers)
        return copied

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.by_id.get(broker_id)
        if broker is None or broker.epoch != epoch:
            known = f"has epoch {broker.epoch}" if broker else "is not registered"
            raise CorruptMetadataError(f"a record about broker {broker_id} of epoch {epoch}, which {known}")
        return broker


def broker_record(broker: BrokerRegistration, metadata_version: int) -> RegisterBrokerRecord:
    """The record that registers a broker as it is now, leaving out what the metadata.version has no field for."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker and metadata_version >= 8,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=end.listener, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for end in broker.endpoints
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=name, min_supported_version=supported.lowest, max_supported_version=supported.highest
            )
            for name, supported in broker.features
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.directories if has_directory_assignment(metadata_version) else (),
        cordoned_log_dirs=broker.cordoned_directories if has_cordoned_directories(metadata_version) else None,
    )


def _ranges(
    features: list[RegisterBrokerRecord.BrokerFeature] | list[RegisterControllerRecord.ControllerFeature],
) -> tuple[tuple[str, Range], ...]:
    """By name: nodes list them in no particular order."""
    ranges = (
        (feature.name, Range(feature.min_supported_version, feature.max_supported_version)) for feature in features
    )
    return tuple(sorted(ranges))
