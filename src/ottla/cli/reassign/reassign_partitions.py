"""`kafka-reassign-partitions`: moves replicas to other brokers, and to other directories of a broker.

A move continues by itself after `--execute`; `--verify` tells how far it is, and removes throttles when all moves are
done. Everything is printed on standard output, failures too, as Kafka's tool does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.failures import FAILURES, Terse, error_text
from ottla.cli.java_names import java_error_text
from ottla.cli.options.checks import run_program
from ottla.cli.options.reading import Given
from ottla.cli.reassign.assignment_files import (
    assignment_json,
    read_assignment,
    read_sound_assignment,
    read_text,
    topics_to_move,
)
from ottla.cli.reassign.cluster_replicas import (
    Replicas,
    directories_of,
    replicas_if_there,
    replicas_of_partitions,
    replicas_of_topics,
)
from ottla.cli.reassign.directory_moves import Unfinished, moves_to, start_moves
from ottla.cli.reassign.proposing import broker_ids, proposed, usable_brokers
from ottla.cli.reassign.reassign_options import PROGRAM, check
from ottla.cli.reassign.throttles import clear_throttles, limit_directory_moves, limit_moves, partition_moves
from ottla.cli.reassign.waiting import wait_for_moves
from ottla.cli.sessions import open_admin

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.client.errors import KafkaError


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    action = _ACTIONS[check(given)]
    try:
        with open_admin(
            given.get("bootstrap-server"),
            controllers=given.get("bootstrap-controller"),
            config_file=given.get("command-config"),
        ) as admin:
            action(admin, given)
            return 0
    except BrokenPipeError:
        raise
    except Unfinished as problem:
        print(problem)
    except FAILURES as problem:
        print(f"Error: {java_error_text(problem)}")
    return 1


def _generate(admin: Admin, given: Given) -> None:
    text = read_text(given.text("topics-to-move-json-file"))
    ids = broker_ids(given.text("broker-list"))
    current = replicas_of_topics(admin, topics_to_move(text))
    brokers = usable_brokers(admin, ids, by_rack="disable-rack-aware" not in given)
    proposal = proposed(current, brokers)
    print(f"Current partition replica assignment\n{assignment_json(current, directories_of(admin, current))}\n")
    print(f"Proposed partition reassignment configuration\n{assignment_json(proposal, {})}")


def _execute(admin: Admin, given: Given) -> None:
    target = read_sound_assignment(read_text(given.text("reassignment-json-file")))
    rate, directory_rate = given.integer("throttle"), given.integer("replica-alter-log-dirs-throttle")
    timeout_ms = given.integer("timeout")
    under_way = admin.list_partition_reassignments()
    if under_way and "additional" not in given:
        raise Unfinished(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
            "create a new partition assignment in addition to the existing one. The --additional flag can also be "
            "used to change the throttle by resubmitting the current reassignment."
        )
    _check_brokers(admin, target.replicas)
    current = replicas_of_partitions(admin, target.replicas)
    print(f"Current partition replica assignment\n\n{assignment_json(current, directories_of(admin, current))}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    if rate >= 0 or directory_rate >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
            "removed."
        )
    if rate >= 0:
        limit_moves(admin, partition_moves(target.replicas, current, under_way), rate)
    if directory_rate >= 0:
        limit_directory_moves(admin, {replica.broker_id for replica in target.directories}, directory_rate)
    started = admin.alter_partition_reassignments(
        target.replicas, allow_replication_factor_change="disallow-replication-factor-change" not in given
    )
    if errors := started.errors:
        raise Unfinished(f"Error reassigning partition(s):\n{_error_lines(errors)}")
    print(f"Successfully started partition reassignment{_plural(target.replicas)} for {_listed(target.replicas)}")
    if target.directories:
        start_moves(admin, target.directories, timeout_ms)
    if "wait" in given:
        _verify(admin, given)


def _verify(admin: Admin, given: Given) -> None:
    target = read_assignment(read_text(given.text("reassignment-json-file")))
    if "wait" in given:
        wait_for_moves(admin, target)
    under_way = admin.list_partition_reassignments()
    found = replicas_if_there(admin, target.replicas.keys() - under_way.keys())
    print("Status of partition reassignment:")
    for partition, wanted in sorted(target.replicas.items()):
        print(_status(partition, wanted, found.get(partition)))
    moves = moves_to(admin, target.directories)
    print("\n".join(map(str, moves)))
    if not under_way and not any(move.is_under_way for move in moves) and "preserve-throttles" not in given:
        clear_throttles(admin, target.replicas)


def _cancel(admin: Admin, given: Given) -> None:
    target = read_assignment(read_text(given.text("reassignment-json-file")))
    under_way = admin.list_partition_reassignments(target.replicas)
    if under_way:
        errors = admin.alter_partition_reassignments(dict.fromkeys(under_way)).errors
        if errors:
            raise Unfinished(f"Error cancelling partition reassignment{_plural(errors)} for:\n{_error_lines(errors)}")
        print(f"Successfully cancelled partition reassignment{_plural(under_way)} for: {_listed(under_way)}")
    else:
        print("None of the specified partition reassignments are active.")
    back = {
        move.replica: move.place.current_path
        for move in moves_to(admin, target.directories)
        if move.is_under_way and move.place and move.place.current_path
    }
    if back:
        start_moves(admin, back, given.integer("timeout"))
    else:
        # Kafka's tool does not end this line, either.
        print("None of the specified partition moves are active.", end="")
    if "preserve-throttles" not in given:
        clear_throttles(admin, target.replicas)


def _list(admin: Admin, given: Given) -> None:
    under_way = admin.list_partition_reassignments()
    if not under_way:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for partition, move in sorted(under_way.items()):
        adding = f" adding: {_ids(move.adding_replicas)}." if move.adding_replicas else ""
        removing = f" removing: {_ids(move.removing_replicas)}." if move.removing_replicas else ""
        print(f"{partition}: replicas: {_ids(move.replicas)}.{adding}{removing}")


_ACTIONS: Final[Mapping[str, Callable[[Admin, Given], None]]] = {
    "generate": _generate,
    "execute": _execute,
    "verify": _verify,
    "cancel": _cancel,
    "list": _list,
}


def _check_brokers(admin: Admin, replicas: Replicas) -> None:
    known = {node.id for node in admin.describe_cluster().nodes}
    for broker in sorted({broker for brokers in replicas.values() for broker in brokers} - known):
        raise Terse(f"Unknown broker id {broker}")


def _status(partition: TopicPartition, wanted: tuple[int, ...], found: tuple[int, ...] | None) -> str:
    """`found` is None for a partition that is moving."""
    if found is None:
        return f"Reassignment of partition {partition} is still in progress."
    if found == wanted:
        return f"Reassignment of partition {partition} is completed."
    return (
        f"There is no active reassignment of partition {partition}, but replica set is {_ids(found)} rather than "
        f"{_ids(wanted)}."
    )


def _error_lines(errors: Mapping[TopicPartition, KafkaError]) -> str:
    return "\n".join(f"{partition}: {error_text(error)}" for partition, error in sorted(errors.items()))


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions)))


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _plural(things: Mapping[TopicPartition, object]) -> str:
    return "" if len(things) == 1 else "s"
