"""The directory of a cluster on this machine.

    DIR/node-1/server.properties    the node's settings, made once and then the user's to change
    DIR/node-1/data                 its log directory, formatted
    DIR/node-1/node.log             what its process prints
    DIR/node-1/pid                  its process; down: it is not to be started again by itself
    DIR/supervisor.pid              the process of `ottla cluster start`

The first three nodes are controllers and brokers, the others brokers. Two nodes have one controller: a quorum of two
fails when either does. The voters are data (KIP-853).
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from secrets import token_bytes
from time import time
from typing import Final, NamedTuple

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid, random_uuid, uuid_text
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

_MOST_CONTROLLERS: Final = 3
_LISTENER: Final = "CONTROLLER"


class NodeFiles(NamedTuple):
    node_id: int
    directory: Path
    address: str
    """Where clients reach it."""

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def log(self) -> Path:
        return self.directory / "node.log"

    @property
    def pid(self) -> Path:
        return self.directory / "pid"

    @property
    def down(self) -> Path:
        return self.directory / "down"


class NoCluster(StorageError):
    """There is no cluster in that directory."""


def open_cluster(directory: Path) -> list[NodeFiles]:
    """The nodes of a cluster that was made before. Raises `NoCluster`."""
    from ottla.config.properties import read_properties

    nodes = []
    for path in directory.glob("node-*/server.properties"):
        properties = read_properties(path.read_bytes())
        address = properties["listeners"].partition("://")[2].partition(",")[0]
        nodes.append(NodeFiles(int(properties["node.id"]), path.parent, address))
    if not nodes:
        raise NoCluster(f"there is no cluster in {directory}: `ottla cluster start --data {directory}` makes one")
    return sorted(nodes)


def make_cluster(directory: Path, count: int, port: int) -> list[NodeFiles]:
    """A new cluster of so many nodes. Clients reach the first at `port`, the next one port after it; 0 picks free ones.

    A crash half-way leaves some nodes: they have their settings last, and without them they are none.
    """
    controllers = min(count, _MOST_CONTROLLERS) if count >= _MOST_CONTROLLERS else 1
    ports = _ports(port, count + controllers)
    cluster_id = uuid_text(_new_uuid())
    voters = VoterSet(
        Voter(ReplicaKey(node_id, _new_uuid()), (Endpoint(_LISTENER, "127.0.0.1", ports[count + node_id - 1]),))
        for node_id in range(1, controllers + 1)
    )
    nodes = []
    for node_id in range(1, count + 1):
        node = NodeFiles(node_id, directory / f"node-{node_id}", f"127.0.0.1:{ports[node_id - 1]}")
        node.directory.mkdir(parents=True, exist_ok=True)
        _format(node, cluster_id, voters)
        node.properties.write_text(_settings(node, voters, count))
        nodes.append(node)
    return nodes


def _settings(node: NodeFiles, voters: VoterSet, count: int) -> str:
    controllers = [voter.endpoints[0] for voter in voters]
    listeners = [f"PLAINTEXT://{node.address}"]
    me = voters.get(node.node_id)
    if me is not None:
        listeners.append(f"{_LISTENER}://127.0.0.1:{me.endpoints[0].port}")
    copies = min(count, 3)
    in_sync = max(copies - 1, 1)
    settings = {
        "process.roles": "broker,controller" if me is not None else "broker",
        "node.id": node.node_id,
        "listeners": ",".join(listeners),
        "controller.listener.names": _LISTENER,
        "controller.quorum.bootstrap.servers": ",".join(f"{end.host}:{end.port}" for end in controllers),
        "log.dirs": (node.directory / "data").absolute(),
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _format(node: NodeFiles, cluster_id: str, voters: VoterSet) -> None:
    from ottla.log.disk import OsDisk
    from ottla.node.clock import SystemClock, java_date
    from ottla.node.storage.formatting import FormatPlan, Surroundings, format_storage

    data = str((node.directory / "data").absolute())
    is_controller = voters.get(node.node_id) is not None
    plan = FormatPlan(
        cluster_id,
        node.node_id,
        (data,),
        data,
        initial_voters=voters if is_controller else None,
        has_dynamic_voters=is_controller,
    )
    world = Surroundings(OsDisk(), SystemClock(), java_date(int(time() * 1000)), _new_uuid, lambda: token_bytes(20))
    format_storage(plan, world, lambda _line: None)


def _new_uuid() -> Uuid:
    """One whose text does not look like an option on a command line."""
    while uuid_text(made := random_uuid(token_bytes)).startswith("-"):
        pass
    return made


def _ports(first: int, count: int) -> Sequence[int]:
    if first:
        return range(first, first + count)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
