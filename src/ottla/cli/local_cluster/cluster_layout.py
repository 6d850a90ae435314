"""The directory of a cluster on this machine.

DIR/node-1/server.properties    the node's settings, made once and then the user's to change
DIR/node-1/data                 its log directory, formatted
DIR/node-1/node.log             what its process prints; node.log.old: what the one before it printed
DIR/node-1/pid                  its process; down: it is not to be started again by itself
DIR/supervisor.pid              the process that started the nodes and watches over them
DIR/run.arguments               what every node of this run is started with, a word a line
"""

from pathlib import Path
from typing import NamedTuple

from ottla.base.errors import StorageError


class NodeFiles(NamedTuple):
    node_id: int
    directory: Path
    address: str
    """Where clients reach it; of a controller alone, where brokers do."""
    roles: tuple[str, ...] = ("broker", "controller")

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def data(self) -> Path:
        return self.directory / "data"

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
    """The nodes of a cluster that was made before, by their ids. Raises `NoCluster`."""
    from ottla.config.properties import read_properties

    nodes = []
    for path in directory.absolute().glob("node-*/server.properties"):
        properties = read_properties(path.read_bytes())
        address = properties["listeners"].partition("://")[2].partition(",")[0]
        roles = tuple(role.strip() for role in properties["process.roles"].split(","))
        nodes.append(NodeFiles(int(properties["node.id"]), path.parent, address, roles))
    if not nodes:
        raise NoCluster(f"there is no cluster in {directory}: `ottla cluster start --data {directory}` makes one")
    return sorted(nodes)


def refuse_single_node(directory: Path, command: str) -> None:
    """Raises `StorageError` if this is the data directory of a node: a cluster would be made among its partitions."""
    if (directory / "meta.properties").exists():
        raise StorageError(f"{directory} is of one node: {command} needs a directory of its own (--data)")


def refuse_other_port(directory: Path, first: NodeFiles, port: int | None) -> None:
    """Raises `StorageError` if `port`, where it is given and not 0, is not that of the first broker there."""
    own = int(first.address.rpartition(":")[2])
    if port and port != own:
        raise StorageError(
            f"the first broker in {directory} is at port {own}: leave --port out, or change `listeners` in "
            f"{first.properties}"
        )


def bootstrap(nodes: list[NodeFiles]) -> str:
    """Where clients begin: all brokers."""
    return ",".join(node.address for node in nodes if node.is_broker)


def arguments_path(directory: Path) -> Path:
    return directory / "run.arguments"
