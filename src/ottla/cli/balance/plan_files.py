"""Plans in files: as `kafka-reassign-partitions` has them, with what was before, so that a plan can be undone.

{"version": 1, "cluster_id": "…", "partitions": [
  {"topic": "orders", "partition": 0, "replicas": [2, 3, 1], "before": [1, 2, 3]}, …]}
"""

import json
import os
from collections.abc import Iterable

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.balance.proposing import Move


class BadPlan(OttlaError):
    """A file that is no plan, or one for another cluster."""


def write_plan(path: str, cluster_id: str, moves: Iterable[Move]) -> None:
    """Whole, or not at all."""
    document = {
        "version": 1,
        "cluster_id": cluster_id,
        "partitions": [
            {
                "topic": move.at.topic,
                "partition": move.at.partition,
                "replicas": list(move.after),
                "before": list(move.before),
            }
            for move in moves
        ],
    }
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def read_plan(path: str, cluster_id: str, *, is_undone: bool) -> dict[TopicPartition, tuple[int, ...]]:
    """Where the replicas are to be; with `is_undone`, where they were before."""
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except ValueError as problem:
            raise BadPlan(f"{path}: not JSON: {problem}") from None
    key = "before" if is_undone else "replicas"
    wanted: dict[TopicPartition, tuple[int, ...]] = {}
    try:
        kept_for = document.get("cluster_id", cluster_id)
        for one in document["partitions"]:
            at = TopicPartition(str(one["topic"]), int(one["partition"]))
            if at in wanted:
                raise BadPlan(f"{path}: {at} is in it twice")
            wanted[at] = tuple(int(broker) for broker in one[key])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        lacks = "it does not say what was before" if is_undone and problem.args == ("before",) else "it is not a plan"
        raise BadPlan(f"{path}: {lacks} (version 1, partitions with topic, partition and replicas)") from None
    if kept_for != cluster_id:
        raise BadPlan(f"{path} is for cluster {kept_for}, and this is cluster {cluster_id}")
    for at, replicas in wanted.items():
        if not replicas or len(set(replicas)) < len(replicas):
            raise BadPlan(f"{path}: {at} has no replica, or a broker twice: {list(replicas)}")
    return wanted


def can_undo(path: str, moves: Iterable[Move]) -> bool:
    """Whether the file says of each of these moves where its partition is now."""
    with open(path, encoding="utf-8") as file:
        partitions = json.load(file)["partitions"]
    before = {(one["topic"], one["partition"]): one.get("before") for one in partitions}
    return all(before.get((move.at.topic, move.at.partition)) == list(move.before) for move in moves)
