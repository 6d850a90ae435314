"""A node with two log directories, for moving replicas between them, and a controller that commits where they are."""

import re
from collections.abc import Callable
from typing import Any

from ottla.base.ids import Uuid
from ottla.runtime.channels import Caller, Failed, Then
from ottla.wire.messages import (
    AlterReplicaLogDirsRequest,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DescribeLogDirsRequest,
    PartitionChangeRecord,
)
from tests.unit.broker.brokers import TestNode

IDS = {"/one": Uuid(b"1" * 16), "/two": Uuid(b"2" * 16)}
ENOUGH_MS = 100
FILE_DELETE_DELAY_MS = 60_000


class AssigningController:
    """Commits every assignment at once, or, while held, when it is let go. `assigned` are the directories told."""

    def __init__(self, node: TestNode) -> None:
        self._node = node
        self._parked: list[Callable[[], None]] | None = None
        self.assigned: list[Uuid] = []

    def ask(self, request: Any, version: int, caller: Caller, then: Then, _failed: Failed) -> None:
        def answer() -> None:
            self._assign(request)
            then(AssignReplicasToDirsResponse())

        if self._parked is None:
            answer()
        else:
            self._parked.append(answer)

    def _assign(self, request: AssignReplicasToDirsRequest) -> None:
        for directory in request.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    self.assigned.append(directory.id)
                    if topic.topic_id in self._node.image.topics.by_id:
                        self._node.commit(
                            PartitionChangeRecord(
                                topic_id=topic.topic_id,
                                partition_id=partition.partition_index,
                                directories=[directory.id],
                            )
                        )

    def hold(self) -> None:
        self._parked = []

    def let_go(self) -> None:
        parked, self._parked = self._parked or [], None
        for answer in parked:
            answer()


def moving_node(disk: Any = None, image: Any = None, **settings: str) -> TestNode:
    """Another one on the same disk and image is the same node after a restart."""
    node = TestNode(disk, image, log_dirs=tuple(IDS), directory_ids=IDS, **settings)
    controller = AssigningController(node)
    node.controller.other = controller
    node.controller = controller  # type: ignore[assignment]
    node.broker.identity.broker_epoch = 7
    return node


def in_one(node: TestNode, name: str = "orders", **settings: str) -> None:
    """A topic whose only partition is in /one."""
    node.create_topic(name, directories=(IDS["/one"],), **settings)
    assert node.partition(name).directory == "/one"


def move(node: TestNode, path: str = "/two", topic: str = "orders", index: int = 0) -> int:
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=(index,))]
    dirs = [AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=topics)]
    (result,) = node.send(AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    return int(result.partitions[0].error_code)


def described(node: TestNode) -> dict[str, list[tuple[str, int, bool]]]:
    """Name, lag and whether it is a future one, of the replicas in each directory."""
    results = node.send(DescribeLogDirsRequest(topics=None), 5).results
    return {
        result.log_dir: [
            (topic.name, partition.offset_lag, partition.is_future_key)
            for topic in result.topics
            for partition in topic.partitions
        ]
        for result in results
    }


def names_in(node: TestNode, path: str) -> list[str]:
    """The partitions' directories, without what makes their names unique."""
    found = [name for name in node.disk.list_dir(path) if node.disk.is_dir(f"{path}/{name}")]
    return sorted(re.sub(r"\.[0-9a-f]{32}-", "-", name) for name in found)
