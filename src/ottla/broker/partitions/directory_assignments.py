"""Tells the controller which log directory holds each replica, where it does not know (KIP-858).

The controller places a replica on a broker; a broker with several directories picks one. The controller has to know
which: when the broker reports a directory as failed, the partitions in it need new leaders. What is to be reported
collects for a moment and goes out in one request; what the controller does not take is reported again. One request is
under way at a time, for as long as it takes: it may be asked anew of the next controller, and a later one would
overtake it. So the last word about a replica is the last that the controller hears. A replica that moves to another
directory is reported before it is there (KIP-858), and its move waits until that is committed. A replica that this node
does not serve is reported as LOST, which is a directory that is never online.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ottla.base.ids import Uuid
from ottla.base.ports import Timer, Timers
from ottla.broker.partitions.partition import Partition
from ottla.machines.metadata.image.directory_ids import LOST
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.runtime.apart import apart, ask_surely, later
from ottla.runtime.channels import THIS_NODE, ControllerChannel, Failed, Then, newest_version
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_COLLECT_S = 0.01
_RETRY_S = 0.5

_DirectoryData = AssignReplicasToDirsRequest.DirectoryData
_TopicData = AssignReplicasToDirsRequest.TopicData
_PartitionData = AssignReplicasToDirsRequest.PartitionData


_Place: TypeAlias = tuple[Uuid, int]


class DirectoryAssignments:
    def __init__(self, partitions: "Partitions", timers: Timers, controller: ControllerChannel) -> None:
        self._partitions = partitions
        self._timers = timers
        self._controller = controller
        self._is_telling = False
        self._unsent_assignments: dict[_Place, Uuid] = {}
        self._lost: set[_Place] = set()
        self._waiting: dict[_Place, tuple[Uuid, Callable[[], None]]] = {}
        self._timer: Timer | None = None

    def note(self, partition: Partition, image: PartitionImage) -> None:
        """Looks whether the metadata knows where a replica is, and will know if it was reported as lost.

        Of one that moves it is to know where it is about to be.
        """
        home, place = self._partitions.identity.directory_ids.get(partition.directory), _place_of(partition)
        if place in self._waiting:
            home = self._waiting[place][0]
        is_known = image.directory(self._partitions.identity.node_id) == home and place not in self._lost
        self._lost.discard(place)
        if home is not None and not is_known:
            self._note(partition, home)

    def lose(self, topic_id: Uuid, index: int) -> None:
        """Tells that this node does not serve a replica: it is to be neither leader nor in the ISR.

        Until `note` finds it again. The metadata says LOST meanwhile, also when the node starts anew.
        """
        if self._partitions.identity.directory_ids and (topic_id, index) not in self._lost:
            self._lost.add((topic_id, index))
            self._unsent_assignments[topic_id, index] = LOST
            self._tell_in(_COLLECT_S)

    def assign(self, partition: Partition, directory_id: Uuid, then: Callable[[], None]) -> None:
        """Tells where a replica is about to be. `then` hears when the metadata says so, unless `forget` comes first."""
        self._waiting[_place_of(partition)] = directory_id, then
        self._note(partition, directory_id)

    def forget(self, partition: Partition) -> None:
        """Nobody waits any more."""
        self._waiting.pop(_place_of(partition), None)

    def revert(self, partition: Partition) -> None:
        """Tells that a replica stays where it is, whatever was or is being reported."""
        home = self._partitions.identity.directory_ids.get(partition.directory)
        if home is not None:
            self._note(partition, home)

    def _note(self, partition: Partition, directory_id: Uuid) -> None:
        self._unsent_assignments[_place_of(partition)] = directory_id
        self._tell_in(_COLLECT_S)

    def _tell_in(self, delay_s: float) -> None:
        if self._timer is None and not self._is_telling and self._unsent_assignments:
            self._timer = later(self._timers, delay_s, self._tell)

    def _tell(self) -> None:
        self._timer = None
        if self._partitions.identity.broker_epoch < 0:
            self._tell_in(_RETRY_S)  # Not registered yet: the controller would not know us.
            return
        sent, self._unsent_assignments = self._unsent_assignments, {}
        self._is_telling = True

        def on_reply(reply: AssignReplicasToDirsResponse) -> None:
            if reply.error_code:
                on_error(ErrorCode(reply.error_code))
                return
            refused = _refused(reply)
            self._end_telling(_COLLECT_S)
            self._on_taken({place: directory for place, directory in sent.items() if place not in refused})

        def on_error(error: ErrorCode) -> None:
            if error is ErrorCode.UNSUPPORTED_VERSION:
                self._end_telling(_COLLECT_S)
                self._on_taken(sent)  # The cluster's metadata.version is older than directories.
            else:
                self._unsent_assignments = sent | self._unsent_assignments
                self._end_telling(_RETRY_S)

        ask_surely(self._timers, lambda *heard: self._send(sent, *heard), on_reply, on_error)

    def _send(self, sent: dict[_Place, Uuid], then: Then, failed: Failed) -> None:
        request = _request(sent, self._partitions.identity.node_id, self._partitions.identity.broker_epoch)
        self._controller.ask(request, newest_version(request), THIS_NODE, then, failed)

    def _end_telling(self, next_s: float) -> None:
        """What has come meanwhile, or was not taken, is reported in the next request."""
        self._is_telling = False
        self._tell_in(next_s)

    def _on_taken(self, sent: Mapping[_Place, Uuid]) -> None:
        for place, directory in sent.items():
            awaited, then = self._waiting.get(place, (None, None))
            if then is not None and directory == awaited and place not in self._unsent_assignments:
                del self._waiting[place]
                self._lost.discard(place)
                apart(self._timers, then)


def _place_of(partition: Partition) -> _Place:
    return partition.topic_id, partition.name.partition


def _refused(reply: AssignReplicasToDirsResponse) -> set[_Place]:
    """What the controller knows nothing of: the metadata, which is about to be heard, says the same."""
    return {
        (topic.topic_id, partition.partition_index)
        for directory in reply.directories
        for topic in directory.topics
        for partition in topic.partitions
        if partition.error_code
    }


def _request(sent: dict[_Place, Uuid], node_id: int, broker_epoch: int) -> AssignReplicasToDirsRequest:
    by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
    for (topic_id, index), directory_id in sent.items():
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
