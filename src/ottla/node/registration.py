"""How a broker joins its cluster, stays in it and leaves: registration, heartbeats, controlled shutdown (KIP-631)."""

import logging
from collections.abc import Callable, Sequence

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid
from ottla.base.ports import Timer
from ottla.broker.broker import Broker
from ottla.machines.metadata.image.features import FEATURES
from ottla.node.listeners import SECURITY_PROTOCOLS, Endpoint
from ottla.runtime.channels import ask_as_node
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

_log = logging.getLogger(__name__)


class CannotJoin(StorageError):
    """The controller does not take this broker: its directories do not fit the cluster's metadata."""


class Membership:
    """One life of a broker in the cluster."""

    def __init__(
        self,
        broker: Broker,
        endpoints: Sequence[Endpoint],
        *,
        incarnation_id: Uuid,
        previous_broker_epoch: int,
        committed_offset: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._endpoints = endpoints
        self._incarnation_id = incarnation_id
        self._previous_broker_epoch = previous_broker_epoch
        self._committed_offset = committed_offset
        self._heartbeats: Timer | None = None
        self._offline_directories: list[Uuid] = []

    def join(self, then: Callable[[None], None], failed: Callable[[Exception], None]) -> None:
        """Registers, and asks to be unfenced; `then` is called when clients may be sent here.

        `failed` is told when the controller will not have this broker.
        """
        request = BrokerRegistrationRequest(
            broker_id=self._broker.identity.node_id,
            cluster_id=self._broker.identity.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=endpoint.listener,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=SECURITY_PROTOCOLS.index(endpoint.protocol),
                )
                for endpoint in self._endpoints
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=feature.supported[0], max_supported_version=feature.supported[1]
                )
                for name, feature in FEATURES.items()
            ],
            rack=self._rack(),
            log_dirs=list(self._broker.identity.directory_ids.values()),
            previous_broker_epoch=self._previous_broker_epoch,
        )
        ask_as_node(
            self._broker.controller,
            request,
            lambda reply: self._on_registered(reply, then, failed),
            lambda error: failed(CannotJoin(f"the broker cannot register: {error.name}")),
        )

    def _rack(self) -> str | None:
        rack = self._broker.config["broker.rack"]
        return str(rack) if rack is not None else None

    def _on_registered(
        self, reply: BrokerRegistrationResponse, then: Callable[[None], None], failed: Callable[[Exception], None]
    ) -> None:
        if reply.error_code:
            name = ErrorCode(reply.error_code).name
            failed(CannotJoin(f"the controller does not take broker {self._broker.identity.node_id}: {name}"))
            return
        self._broker.identity.broker_epoch = reply.broker_epoch
        interval_s = self._broker.config.integer("broker.heartbeat.interval.ms") / 1000
        self._heartbeats = self._broker.world.timers.every(interval_s, lambda: self._beat(lambda _: None))
        self._beat(lambda _: then(None))

    def _beat(self, then: Callable[[BrokerHeartbeatResponse], None], *, want_shut_down: bool = False) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=self._broker.identity.node_id,
            broker_epoch=self._broker.identity.broker_epoch,
            current_metadata_offset=self._committed_offset() - 1,
            want_fence=False,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline_directories),
        )
        ask_as_node(self._broker.controller, request, then, self._on_heartbeat_failed)

    def _on_heartbeat_failed(self, error: ErrorCode) -> None:
        _log.warning("the controller did not take a heartbeat: %s", error.name)

    def on_directory_failed(self, path: str) -> None:
        """Tells the controller that a log directory is gone, and the replicas in it with it (KIP-858)."""
        directory_id = self._broker.identity.directory_ids.get(path)
        if directory_id is not None and directory_id not in self._offline_directories:
            self._offline_directories.append(directory_id)
            self._beat(lambda _: None)

    def leave(self, then: Callable[[], None]) -> None:
        """Asks to shut down; `then` is called when the controller has moved what this broker led."""
        if self._heartbeats is None:
            then()
            return
        self._heartbeats.cancel()
        self._heartbeats = None
        self._beat(lambda _: then(), want_shut_down=True)
