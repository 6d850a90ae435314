"""How a controller makes itself known to the cluster: ControllerRegistration (KIP-919).

A controller registers when the metadata does not have it as it is in this life: once after its start, and again if what
it wrote was lost. The active controller writes it down, so that brokers know where the controllers are and which
features they support. A registration in the place of this one, with other addresses, is another controller's that has
the same `node.id` and did not look before it started (`taken_node_id`): that is logged.
"""

from __future__ import annotations  # messages are made when they are first named

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.base.ids import random_uuid
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.brokers_image import ControllerRegistration as Registered
from ottla.machines.metadata.image.features import SERVED, has_controller_registration
from ottla.node.listeners import SECURITY_PROTOCOLS, Endpoint
from ottla.runtime.apart import ask_as_node
from ottla.runtime.channels import ControllerChannel
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.world import World
from ottla.wire import messages
from ottla.wire.errors import ErrorCode

# What brokers and controllers tell of themselves when they register: where they listen, and which features they serve.
#
# The requests of the two have structs of their own for it, with the same fields; `kind` is the one to make.

T = TypeVar("T")


def listeners_as(kind: Callable[..., T], endpoints: Iterable[Endpoint]) -> list[T]:
    return [
        kind(
            name=endpoint.listener,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=SECURITY_PROTOCOLS.index(endpoint.protocol),
        )
        for endpoint in endpoints
    ]


def features_as(kind: Callable[..., T]) -> list[T]:
    return [
        kind(name=name, min_supported_version=supported.lowest, max_supported_version=supported.highest)
        for name, supported in SERVED.items()
    ]


_log = logging.getLogger(__name__)
_CHECK_S: Final = 1.0


class ControllerRegistration:
    """Of one controller, in one life of it."""

    def __init__(
        self,
        world: World,
        node_id: int,
        endpoints: Sequence[Endpoint],
        metadata: MetadataLog[Controller],
        channel: ControllerChannel,
    ) -> None:
        self._timers = world.timers
        self._node_id = node_id
        self._endpoints = endpoints
        self._metadata = metadata
        self._channel = channel
        self._incarnation_id = random_uuid(world.entropy.randbytes)
        self._is_asking = False
        self._was_known = False
        self._logged: set[str] = set()

    def start(self) -> None:
        self._timers.every(_CHECK_S, self._check, first_s=0.0)

    def _check(self) -> None:
        image = self._metadata.image
        if self._is_asking or not has_controller_registration(image.features.metadata_version):
            return
        known = image.brokers.controllers.get(self._node_id)
        if known is not None and known.incarnation_id == self._incarnation_id:
            self._was_known = True
            return
        if known is not None and self._was_known:
            self._tell_of_other(known)
        self._is_asking = True
        request = messages.ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            listeners=listeners_as(messages.ControllerRegistrationRequest.Listener, self._endpoints),
            features=features_as(messages.ControllerRegistrationRequest.Feature),
        )
        ask_as_node(self._timers, self._channel, request, self._on_registered, self._on_failed)

    def _tell_of_other(self, other: Registered) -> None:
        theirs = [f"{endpoint.host}:{endpoint.port}" for endpoint in other.endpoints]
        known = self._logged.union(f"{endpoint.host}:{endpoint.port}" for endpoint in self._endpoints)
        if known.isdisjoint(theirs):
            self._logged.update(theirs)
            _log.error(
                "another controller with node.id=%s has registered, at %s: each controller needs a node.id of its own",
                self._node_id,
                ", ".join(theirs),
            )

    def _on_registered(self, reply: messages.ControllerRegistrationResponse) -> None:
        self._is_asking = False
        if reply.error_code:
            self._on_failed(ErrorCode(reply.error_code))

    def _on_failed(self, error: ErrorCode) -> None:
        self._is_asking = False
        _log.warning("this controller could not register: %s", error.name)
