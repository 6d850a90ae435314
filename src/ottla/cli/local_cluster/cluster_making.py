"""New clusters, and new nodes of a cluster, as directories that any node can be started from.

    make_cluster    replicated: the first three nodes are controllers and brokers, the others brokers
    make_cores      one machine's cores: brokers, one controller beside them (node 0), one replica of everything
    make_broker     a further broker of either

Two replicated nodes have one controller: a quorum of two fails when either does. The voters are data (KIP-853). A crash
half-way leaves some nodes: a node has its settings last, and without them it is none.
"""

import socket
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from secrets import token_bytes
from time import time
from typing import Final

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid, random_uuid, uuid_text
from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.cluster_security import PROTOCOLS, secure, security_of
from ottla.cli.start import FOR_ONE_MACHINE
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.testing.free_ports import free_ports

_MOST_CONTROLLERS: Final = 3
_MOST_REPLICAS: Final = 3
_LISTENER: Final = "CONTROLLER"
_HOST: Final = "127.0.0.1"
_OF_ONE_NODE: Final = ("node.id", "process.roles", "listeners", "log.dirs")


def make_cluster(directory: Path, count: int, port: int, security: str = PROTOCOLS[0]) -> list[NodeFiles]:
    """So many nodes. Clients reach the first at `port`, the next one port after it; 0 picks free ones."""
    controllers = _MOST_CONTROLLERS if count >= _MOST_CONTROLLERS else 1
    ports = list(range(port, port + count + controllers)) if port else free_ports(count + controllers)
    _require_free(ports)
    voters = _voters(range(1, controllers + 1), ports[count:])
    common = _common(voters, min(count, _MOST_REPLICAS)) | secure(directory.absolute(), security)
    cluster_id = uuid_text(_new_uuid())
    return [
        _make(directory, node_id, _client_listener(ports[node_id - 1], security), cluster_id, voters, common)
        for node_id in range(1, count + 1)
    ]


def make_cores(directory: Path, count: int, port: int) -> list[NodeFiles]:
    """So many brokers, the first at `port`, the others and the controller at the next ports that are free."""
    ports = [port, *_ports_after(port, count)] if port else free_ports(count + 1)
    _require_free(ports[:1])
    voters = _voters([0], ports[count:])
    # A topic that is created without a number of partitions has one for each core.
    common = _common(voters, 1) | FOR_ONE_MACHINE | {"num.partitions": str(count)}
    cluster_id = uuid_text(_new_uuid())
    listeners: list[dict[str, str]] = [{}, *map(_client_listener, ports[:count])]
    return [_make(directory, node_id, one, cluster_id, voters, common) for node_id, one in enumerate(listeners)]


def make_broker(directory: Path, nodes: list[NodeFiles]) -> NodeFiles:
    """One more broker, with the settings of the last one, at the next free port."""
    from ottla.config.properties import read_properties

    last = max(node for node in nodes if node.is_broker)
    settings = read_properties(last.properties.read_bytes())
    cluster_id = read_properties((last.data / "meta.properties").read_bytes()).get("cluster.id")
    if cluster_id is None:
        raise StorageError(f"{last.data / 'meta.properties'} does not say which cluster it belongs to")
    common = {key: value for key, value in settings.items() if key not in _OF_ONE_NODE}
    addresses = [*(node.address for node in nodes), *settings["controller.quorum.bootstrap.servers"].split(",")]
    (port,) = _ports_after(max(int(address.rpartition(":")[2]) for address in addresses), 1)
    listener = _client_listener(port, security_of(settings["listeners"]))
    return _make(directory, last.node_id + 1, listener, cluster_id, VoterSet(()), common)


def _client_listener(port: int, security: str = PROTOCOLS[0]) -> dict[str, str]:
    return {"broker": f"{security.upper()}://{_HOST}:{port}"}


def _voters(node_ids: range | list[int], ports: list[int]) -> VoterSet:
    return VoterSet(
        Voter(ReplicaKey(node_id, _new_uuid()), (Endpoint(_LISTENER, _HOST, port),))
        for node_id, port in zip(node_ids, ports, strict=True)
    )


def _common(voters: VoterSet, copies: int) -> dict[str, str]:
    """The settings that are the same for all nodes."""
    in_sync = max(copies - 1, 1)
    return {
        "controller.listener.names": _LISTENER,
        "controller.quorum.bootstrap.servers": ",".join(
            f"{voter.endpoints[0].host}:{voter.endpoints[0].port}" for voter in voters
        ),
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }


def _make(
    directory: Path,
    node_id: int,
    listeners: dict[str, str],
    cluster_id: str,
    voters: VoterSet,
    common: Mapping[str, str],
) -> NodeFiles:
    """`listeners` by role; a voter has that of a controller besides."""
    me = voters.get(node_id)
    if me is not None:
        listeners = listeners | {"controller": f"{_LISTENER}://{_HOST}:{me.endpoints[0].port}"}
    address = next(iter(listeners.values())).partition("://")[2]
    node = NodeFiles(node_id, directory.absolute() / f"node-{node_id}", address, tuple(listeners))
    node.directory.mkdir(parents=True, exist_ok=True)
    _format(node, cluster_id, voters)
    own = {
        "process.roles": ",".join(listeners),
        "node.id": str(node_id),
        "listeners": ",".join(listeners.values()),
        "log.dirs": str(node.data),
    }
    node.down.touch()  # until it is started, by its maker
    node.properties.touch(0o600)  # it may have a password
    node.properties.write_text("".join(f"{key}={value}\n" for key, value in (own | dict(common)).items()))
    return node


def _format(node: NodeFiles, cluster_id: str, voters: VoterSet) -> None:
    from ottla.log.disk import OsDisk
    from ottla.node.clock import SystemClock, java_date
    from ottla.node.storage.formatting import FormatPlan, Surroundings, format_storage

    plan = FormatPlan(
        cluster_id,
        node.node_id,
        (str(node.data),),
        str(node.data),
        initial_voters=voters if node.is_controller else None,
        has_dynamic_voters=node.is_controller,
    )
    world = Surroundings(OsDisk(), SystemClock(), java_date(int(time() * 1000)), _new_uuid, lambda: token_bytes(20))
    format_storage(plan, world, lambda _line: None)


def _new_uuid() -> Uuid:
    """One whose text does not look like an option on a command line."""
    while uuid_text(made := random_uuid(token_bytes)).startswith("-"):
        pass
    return made


def _require_free(ports: list[int]) -> None:
    """Before anything is made: the nodes keep their ports."""
    for port in ports:
        if not _is_free(port):
            raise StorageError(f"port {port} of {_HOST} is in use: choose another with --port")


def _is_free(port: int) -> bool:
    try:
        socket.create_server((_HOST, port)).close()
    except OSError:
        return False
    return True


def _ports_after(first: int, count: int) -> list[int]:
    """The next ports at which nobody listens. They are not held: another process may still be faster."""
    free = (port for port in range(first + 1, 65536) if _is_free(port))
    ports = list(islice(free, count))
    if len(ports) < count:
        raise StorageError(f"there are no {count} free ports after {first}")
    return ports
