"""Moves between the directories of a broker: how far they are, and starting them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.cli.failures import Terse

if TYPE_CHECKING:
    from ottla.client.admin.log_dirs import ReplicaPlace, TopicPartitionReplica
    from ottla.client.blocking.admin import Admin

_RETRY_S: Final = 0.1


class Unfinished(OttlaError):
    """The cluster did not take all that it was asked for. The tool tells it as it is, without `Error: ` before it."""


class DirectoryMove(NamedTuple):
    """A replica, where it shall be, and where it is; None if its broker does not answer for it."""

    replica: TopicPartitionReplica
    target: str
    place: ReplicaPlace | None

    @property
    def is_under_way(self) -> bool:
        return self.place is not None and self.place.current_path is not None and self.place.future_path is not None

    def __str__(self) -> str:
        topic, partition, broker = self.replica
        name = f"Partition {topic}-{partition}"
        if self.place is None:
            return f"{name} cannot be found in any live log directory on broker {broker}."
        current, future = self.place.current_path, self.place.future_path
        if current is None:
            return (
                f"{name} is not found in any live log dir on broker {broker}. There is likely an offline log directory "
                "on the broker."
            )
        if future == self.target:
            return f"Reassignment of replica {topic}-{partition}-{broker} is still in progress."
        if future is not None:
            return f"{name} on broker {broker} is being moved to log dir {future} instead of {self.target}."
        if current == self.target:
            return f"Reassignment of replica {topic}-{partition}-{broker} completed successfully."
        return f"{name} on broker {broker} is not being moved from log dir {current} to {self.target}."


def moves_to(admin: Admin, targets: Mapping[TopicPartitionReplica, str]) -> list[DirectoryMove]:
    """Sorted by broker, then by partition."""
    if not targets:
        return []
    places = admin.describe_replica_log_dirs(targets).raise_first()
    return [
        DirectoryMove(replica, targets[replica], places.get(replica))
        for replica in sorted(targets, key=lambda one: (one.broker_id, one))
    ]


def start_moves(admin: Admin, targets: Mapping[TopicPartitionReplica, str], timeout_ms: int) -> None:
    """Asks for each until the broker takes it: a replica that is new to a broker has to be there first."""
    from ottla.client.errors import ReplicaNotAvailable

    pending = dict(targets)
    end = time.monotonic() + timeout_ms / 1000
    while True:
        errors = admin.alter_replica_log_dirs(pending).errors
        for (topic, partition, broker), error in errors.items():
            if not isinstance(error, ReplicaNotAvailable):
                raise Terse(f"Failed to alter dir for {topic}-{partition}-{broker}")
        for replica in pending.keys() - errors.keys():
            path = pending.pop(replica)
            topic, partition, broker = replica
            # The space before the end of the line is Kafka's.
            print(
                f"Successfully started moving log directory to {path} for replica {topic}-{partition} with broker "
                f"{broker} "
            )
        if not pending:
            return
        if time.monotonic() >= end:
            names = ",".join("-".join(map(str, replica)) for replica in sorted(pending))
            raise Unfinished(
                f"Timed out before log directory move{'' if len(pending) == 1 else 's'} could be started for: {names}"
            )
        time.sleep(_RETRY_S)
