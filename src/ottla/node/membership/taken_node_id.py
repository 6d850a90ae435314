"""A controller does not start beside another one with its `node.id`: see `same_id` for what two would do.

The id is known at the address that `controller.quorum.voters` has for it, at that of the voter in the metadata log
(KIP-853), and at that of the registered controller (KIP-919). This node asks wherever it does not listen itself: before
it takes its place in the quorum, by what its own directory says, and once more when it has caught up. The node that
starts second ends; a node whose disk or address was changed finds nobody there and continues.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.base.errors import StorageError
from ottla.base.ids import uuid_text
from ottla.base.ports import Entropy
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.raft.voters import DYNAMIC_VOTERS
from ottla.node.config import NodeConfig
from ottla.node.listeners import Endpoint
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.metadata.quorum.same_id import SameId
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.runtime.procedure import Begin, wait_for, wait_until

_NUMBERS: Final = 1 << 62


class TakenNodeId(StorageError):
    """Another controller of the cluster has this node's id."""


class KnownPlace(NamedTuple):
    """Where this node's id is known to be, and who says so."""

    address: NodeAddress
    source: str


async def take_place(
    config: NodeConfig, metadata: MetadataLog[Controller], endpoints: Sequence[Endpoint], entropy: Entropy
) -> None:
    """Starts the metadata log; it is ready at the end. `endpoints` are the controllers'. Raises `TakenNodeId`."""
    if config.is_controller:
        await _refuse_taken_id(config, metadata, endpoints, entropy)
    await wait_until(metadata.start)
    if config.is_controller:
        await _refuse_taken_id(config, metadata, endpoints, entropy)


async def _refuse_taken_id(
    config: NodeConfig, metadata: MetadataLog[Controller], endpoints: Sequence[Endpoint], entropy: Entropy
) -> None:
    assert metadata.same_id is not None, "a node has a network"
    for place in _known_places(config, metadata, endpoints):
        if await wait_for(_look(metadata.same_id, place.address, entropy)):
            raise TakenNodeId(
                f"another controller with node.id={config.node_id} is up at {place.address}, which is {place.source}: "
                "each controller needs a node.id of its own"
            )


def _known_places(
    config: NodeConfig, metadata: MetadataLog[Controller], endpoints: Sequence[Endpoint]
) -> list[KnownPlace]:
    """Those at which this node does not listen itself, as far as names of hosts tell."""
    if any(listener.for_controllers and not listener.port for listener in config.listeners):
        return []  # It listens elsewhere each time, so nobody knows where.
    found: dict[NodeAddress, str] = {}
    for text in config.values.list("controller.quorum.voters"):
        voter_id, _, address = text.partition("@")
        if int(voter_id) == config.node_id:
            host, _, port = address.rpartition(":")
            found[NodeAddress(host.strip("[]"), int(port))] = "its address in controller.quorum.voters"
    raft = metadata.raft
    voter = raft.voters.get(config.node_id)
    listener = config.values.list("controller.listener.names")[0]
    endpoint = voter.endpoint(listener) if voter is not None else None
    if voter is not None and endpoint is not None and raft.kraft_version >= DYNAMIC_VOTERS:
        known, own = uuid_text(voter.key.directory_id), uuid_text(raft.me.key.directory_id)
        source = f"a voter's address, with directory.id={known} (that of this node's log.dirs is {own})"
        found.setdefault(_address(endpoint), source)
    registered = metadata.image.brokers.controllers.get(config.node_id)
    for end in registered.endpoints if registered is not None else ():
        if end.listener.upper() == listener.upper():
            found.setdefault(_address(end), "where that controller is registered")
    own_addresses = {_address(endpoint) for endpoint in endpoints}
    return [KnownPlace(address, source) for address, source in found.items() if address not in own_addresses]


def _address(endpoint: Any) -> NodeAddress:
    return NodeAddress(endpoint.host, endpoint.port)


def _look(same_id: SameId, address: NodeAddress, entropy: Entropy) -> Begin[bool]:
    number = entropy.randrange(_NUMBERS)
    return lambda done, _failed: same_id.look_at(address, number, done)
