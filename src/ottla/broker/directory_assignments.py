"""Tells the controller which log directory holds each replica, where it does not know (KIP-858).

The controller places a replica on a broker; a broker with several directories picks one. The controller has to know
which: when the broker reports a directory as failed, the partitions in it need new leaders. What is to be told collects
for a moment and goes out in one request; what the controller does not take is told again.
"""

from typing import TYPE_CHECKING

from ottla.base.ids import Uuid
from ottla.broker.partition import Partition
from ottla.machines.metadata.partition import PartitionImage
from ottla.runtime.timers import Timer
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from ottla.broker.context import Broker

_COLLECT_S = 0.01
_RETRY_S = 0.5

_DirectoryData = AssignReplicasToDirsRequest.DirectoryData
_TopicData = AssignReplicasToDirsRequest.TopicData
_PartitionData = AssignReplicasToDirsRequest.PartitionData


class DirectoryAssignments:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._untold: dict[tuple[Uuid, int], Uuid] = {}
        self._timer: Timer | None = None

    def note(self, partition: Partition, image: PartitionImage) -> None:
        """Looks whether the metadata knows where a replica is."""
        home = self._broker.directory_ids.get(partition.directory)
        if home is not None and image.directory(self._broker.node_id) != home:
            self._untold[partition.topic_id, partition.name.partition] = home
            self._tell_in(_COLLECT_S)

    def _tell_in(self, delay_s: float) -> None:
        if self._timer is None and self._untold:
            self._timer = self._broker.timers.after(delay_s, self._tell)

    def _tell(self) -> None:
        self._timer = None
        broker = self._broker
        if broker.broker_epoch < 0:
            self._tell_in(_RETRY_S)  # Not registered yet: the controller would not know us.
            return
        told, self._untold = self._untold, {}
        request = _request(told, broker.node_id, broker.broker_epoch)

        def on_reply(reply: AssignReplicasToDirsResponse) -> None:
            if reply.error_code:
                on_error(ErrorCode(reply.error_code))

        def on_error(error: ErrorCode) -> None:
            if error is not ErrorCode.UNSUPPORTED_VERSION:  # The cluster's metadata.version is older than directories.
                self._untold = told | self._untold
                self._tell_in(_RETRY_S)

        broker.controller.submit(
            lambda controller, now_ms: controller.assign_replicas_to_dirs(request, now_ms), on_reply, on_error
        )


def _request(told: dict[tuple[Uuid, int], Uuid], node_id: int, broker_epoch: int) -> AssignReplicasToDirsRequest:
    by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
    for (topic_id, index), directory_id in told.items():
        by_directory.setdefault(directory_id, {}).setdefault(topic_id, []).append(index)
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            _DirectoryData(
                id=directory_id,
                topics=[
                    _TopicData(
                        topic_id=topic_id,
                        partitions=[_PartitionData(partition_index=index) for index in sorted(indexes)],
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory_id, topics in by_directory.items()
        ],
    )
