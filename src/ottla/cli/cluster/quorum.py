"""`ottla quorum`: a controller's metadata while its node is stopped, and a quorum whose majority is lost.

Theory of operation. Nothing is decided without a majority of the voters, and who votes is itself decided so: a quorum
that has lost its majority for good cannot help itself. `recover` writes into the log of one that is left, as a leader
would, that it is the only voter, in an epoch of its own. Another controller that is left has nothing in that epoch, so
what differs in its log is truncated when it follows. What the one that was chosen had not received yet is lost, though
the lost majority may have acknowledged it: hence the longest log is the one to choose.

A quorum that has a majority must not be recovered: it would go on beside the new one, as a second cluster with the same
name. So the addresses of the other voters are tried first.

A crash half-way leaves the log as it was or with the whole batch; `recover` can be run again.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.failures import FAILURES, Terse
from ottla.cli.help_format import CommandParser
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.machines.raft.voters import Voter, VoterSet
    from ottla.runtime.metadata.storage.store import MetadataStore

_CONNECT_S = 2.0
_ON_ONE_ALONE = "choose one controller alone: two that are each the only voter are two clusters with one name"


class _Place(NamedTuple):
    """The directory of a controller, as its settings name it."""

    node_id: int
    directory: str
    settings: str
    static_voters: str
    store: "MetadataStore"


def main(arguments: list[str] | None = None) -> int:
    import sys

    options = argument_parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except FAILURES as problem:
        print(f"ottla quorum: {problem}", file=sys.stderr)
        return 1


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla quorum",
        description="The metadata of a controller that is stopped; recovery when a majority of controllers is lost.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="{status,recover}")
    status = commands.add_parser("status", help="how far the log of a stopped controller reaches, and who votes")
    status.set_defaults(action=_status)
    recover = commands.add_parser("recover", help="make a stopped controller the only voter")
    recover.add_argument("--execute", action="store_true", help="do it; without, nothing is changed")
    recover.add_argument(
        "--force", action="store_true", help="although other voters answer that are a majority with this one"
    )
    recover.set_defaults(action=_recover)
    for command in (status, recover):
        command.add_argument("-c", "--config", required=True, metavar="FILE", help="the node's server.properties")
    return parser


def _status(options: Namespace) -> int:
    with _opened(options.config) as place:
        epoch, offset = place.store.log_end
        print(f"Node {place.node_id}, {place.directory}")
        print(f"Log end: epoch {epoch}, offset {offset}")
        print(f"Epoch of the quorum: {place.store.read_quorum_state().epoch}")
        print(f"Voters: {_named(_voters(place), place)}")
    return 0


def _recover(options: Namespace) -> int:
    from ottla.machines.raft.events import QuorumState
    from ottla.machines.raft.voters import DYNAMIC_VOTERS, VoterSet
    from ottla.node.clock import SystemClock
    from ottla.runtime.metadata.storage.metadata_batches import control_batch
    from ottla.wire.messages import KRaftVersionRecord

    with _opened(options.config) as place:
        store, voters = place.store, _voters(place)
        if store.kraft_version < DYNAMIC_VOTERS:
            raise Terse(
                "the voters are a setting here: on every node that is left, set controller.quorum.voters to the entry "
                f"of node {place.node_id} alone, and start them (it is {place.static_voters or 'empty'} now); "
                f"{_ON_ONE_ALONE}"
            )
        me = voters.get(place.node_id) if voters is not None else None
        if voters is None or me is None:
            raise Terse(
                f"node {place.node_id} is not a voter: the voters are {_named(voters, place)}. Run it on one of them"
            )
        epoch = max(store.log_end.epoch, store.read_quorum_state().epoch) + 1
        others = ", ".join(str(id) for id in voters.ids if id != place.node_id)
        if not others:
            print(f"Node {place.node_id} is the only voter already: nothing to do.")
            return 0
        answering = [voter.key.id for voter in voters if voter.key.id != place.node_id and _answers(voter)]
        if (len(answering) + 1) * 2 > len(voters.ids) and not options.force:
            raise Terse(
                f"{counted(len(answering), 'other voter')} of {len(voters.ids)} ({', '.join(map(str, answering))}) can "
                f"be connected to. With node {place.node_id} they are a majority: start it, and nothing has to be "
                "recovered. If something else listens at their addresses: --force"
            )
        print(f"Log end: epoch {store.log_end.epoch}, offset {store.log_end.offset}")
        if not options.execute:
            print(f"Node {place.node_id} would be the only voter from epoch {epoch} on; {others} would vote no longer.")
            print("Nothing was changed: --execute does it. Before: compare `ottla quorum status` of all that are left.")
            return 0
        alone = VoterSet([me])
        batch = control_batch(
            [KRaftVersionRecord(k_raft_version=store.kraft_version), alone.to_record()], SystemClock().now_ms()
        )
        # The epoch first: with the log alone, this node could vote for another one in it.
        store.save_quorum_state(QuorumState(epoch=epoch), store.kraft_version, alone.ids)
        store.append(batch, epoch)
        flush = store.start_flush()
        flush.run()
        store.finish_flush(flush)
        print(f"Node {place.node_id} is the only voter from epoch {epoch} on. Start it; then add controllers again.")
        print(
            f"Do not run this on another one, and do not start a majority of the old voters ({others} were the others)"
        )
        print("with the metadata that they have: they would be a second cluster with the same name.")
    return 0


def _answers(voter: "Voter") -> bool:
    """Whether something listens where the controller does."""
    import socket

    for endpoint in voter.endpoints:
        try:
            socket.create_connection((endpoint.host, endpoint.port), _CONNECT_S).close()
        except OSError:
            continue
        return True
    return False


def _voters(place: _Place) -> "VoterSet | None":
    return place.store.voters


def _named(voters: "VoterSet | None", place: _Place) -> str:
    from ottla.machines.raft.voters import DYNAMIC_VOTERS

    if place.store.kraft_version < DYNAMIC_VOTERS:
        return f"{place.static_voters or 'none'} (controller.quorum.voters)"
    return ", ".join(str(id) for id in voters.ids) if voters is not None and len(voters) else "none"


@contextmanager
def _opened(config: str) -> "Iterator[_Place]":
    """Locked, so that its node does not run. Raises `Terse` where there is no metadata of a controller."""
    from ottla.cli.storage import directories_of, read_node_config
    from ottla.log.directory import lock_directory
    from ottla.log.disk import OsDisk
    from ottla.node.clock import SystemClock
    from ottla.runtime.metadata.storage.store import MetadataStore

    values = read_node_config(config)
    _, directory = directories_of(values)
    disk = OsDisk()
    if not os.path.isdir(f"{directory}/__cluster_metadata-0"):
        raise Terse(f"{directory} has no metadata of a controller: is {config} the file of one?")
    lock = lock_directory(disk, directory)
    try:
        store = MetadataStore(disk, directory, SystemClock())
        try:
            static_voters = ",".join(values.list("controller.quorum.voters"))
            yield _Place(values.integer("node.id"), directory, config, static_voters, store)
        finally:
            store.close()
    finally:
        lock.release()
