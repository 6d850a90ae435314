"""`--wait`: until all moves of an assignment are done, with how much is copied on a terminal.

What is to be copied is as large as the leader's replica, for each broker that gets one, and as the replica in the old
directory, for each that changes its directory. New records count, so the whole may grow.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.bars import Bar
from ottla.cli.reassign.directory_moves import moves_to
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.base.ids import TopicPartition
    from ottla.cli.reassign.assignment_files import Assignment
    from ottla.client.admin.replicas import PartitionReassignment
    from ottla.client.blocking.admin import Admin

LOOK_S: Final = 1.0


class Copied(NamedTuple):
    done_bytes: int
    total_bytes: int


def wait_for_moves(admin: Admin, target: Assignment) -> None:
    """Returns when none of them is under way any more."""
    bar, most, finished = Bar(sys.stderr), 0, 0
    while True:
        under_way = {
            partition: move
            for partition, move in admin.list_partition_reassignments().items()
            if partition in target.replicas
        }
        moves = [move for move in moves_to(admin, target.directories) if move.is_under_way]
        if not under_way and not moves:
            bar.clear()
            return
        sizes = _sizes(admin, target)
        copied = copied_so_far(under_way, sizes)
        for move in moves:
            partition = move.replica.topic, move.replica.partition
            future = sizes.get((move.replica.broker_id, partition, True), 0)
            whole = max(sizes.get((move.replica.broker_id, partition, False), 0), future)
            copied = Copied(copied.done_bytes + future, copied.total_bytes + whole)
        # What is finished is no longer reported: the bar must not go back for it.
        if copied.total_bytes > most - finished:
            most = copied.total_bytes + finished
        else:
            finished = most - copied.total_bytes
        bar.show(finished + copied.done_bytes, most, f"{counted(len(under_way) + len(moves), 'move')} under way")
        time.sleep(LOOK_S)


Sizes = dict[tuple[int, tuple[str, int], bool], int]
"""By broker, partition, and whether it is the copy in a new directory."""


def _sizes(admin: Admin, target: Assignment) -> Sizes:
    brokers = sorted({node.id for node in admin.describe_cluster().nodes})
    found: Sizes = {}
    wanted = {(one.topic, one.partition) for one in target.replicas}
    wanted |= {(one.topic, one.partition) for one in target.directories}
    for broker, directories in admin.describe_log_dirs(brokers).succeeded.items():
        for directory in directories.values():
            for partition, replica in directory.replicas.items():
                key = partition.topic, partition.partition
                if key in wanted:
                    found[broker, key, replica.is_future] = replica.size_bytes
    return found


def copied_so_far(under_way: dict[TopicPartition, PartitionReassignment], sizes: Sizes) -> Copied:
    done = total = 0
    for partition, move in under_way.items():
        key = partition.topic, partition.partition
        old = [one for one in move.replicas if one not in move.adding_replicas]
        whole = max((sizes.get((one, key, False), 0) for one in old), default=0)
        for one in move.adding_replicas:
            done += min(sizes.get((one, key, False), 0), whole)
            total += whole
    return Copied(done, total)
