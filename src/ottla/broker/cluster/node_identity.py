"""Who this node is in its cluster."""

from dataclasses import dataclass, field

from ottla.base.ids import Uuid


@dataclass(slots=True)
class NodeIdentity:
    """`broker_epoch` is that of the last registration, -1 before the first. `directory_ids` are those of the log
    directories that are online, by path.
    """

    node_id: int
    cluster_id: str
    broker_epoch: int = -1
    directory_ids: dict[str, Uuid] = field(default_factory=dict)
