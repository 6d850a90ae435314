"""`ottla node drain N` and `ottla node remove N`: empty a broker, and take it out of the cluster."""

import sys
from argparse import ArgumentParser, Namespace
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ottla.cli.balance.balance_command import add_steps, carry_out, save, show
from ottla.cli.help_format import help_formatter
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, complain
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

_INTERRUPTED = 130
_CORDONED = "cordoned.log.dirs"
_LOOK_S = 0.5
_KNOWN_WITHIN_S = 10.0


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla node",
        description="Empties a broker, and takes it out of the cluster.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="{drain,undrain,remove}", required=True)
    drain = commands.add_parser(
        "drain",
        help="give its replicas to the other brokers, and let it have no new ones",
        description="Gives all replicas of a broker to the others, in throttled steps. It gets no new ones from then "
        "on (cordoned.log.dirs). It may be down.",
        formatter_class=help_formatter,
    )
    undrain = commands.add_parser(
        "undrain",
        help="let a broker that was drained have replicas again",
        description="Lets a broker that was drained have new replicas again; `ottla balance` gives it its share.",
        formatter_class=help_formatter,
    )
    remove = commands.add_parser(
        "remove",
        help="drain it, wait until it is stopped, and unregister it",
        description="Drains a broker, waits until it is stopped, and unregisters it.",
        formatter_class=help_formatter,
    )
    for command, action in ((drain, _drain), (undrain, _undrain), (remove, _remove)):
        command.add_argument("node", type=int, metavar="NODE", help="the broker's id")
        add_connection(command)
        command.set_defaults(action=action)
    for command in (drain, remove):
        command.add_argument("--dry-run", action="store_true", help="only say what would be done")
        command.add_argument("--save", metavar="FILE", help="where the plan is written, with what was before")
        add_steps(command)
        command.add_argument("--json", action="store_true", help="print what would be done as one JSON object")
        command.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    remove.add_argument(
        "--stop-timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="how long to wait until it has stopped (default: 600)",
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    from ottla.cli.stopping import stop_on_terminate

    options = argument_parser().parse_args(arguments)
    try:
        with stop_on_terminate(), Cluster.of(options, Scope.ADMIN).admin() as admin:
            result: int = options.action(admin, options)
            return result
    except KeyboardInterrupt:
        print("ottla node: stopped", file=sys.stderr)
        return _INTERRUPTED
    except FAILURES as problem:
        return complain("ottla node", problem)


def _refuse_unknown(admin: "Admin", node: int) -> bool:
    """Whether the broker is up. Raises `Terse` for one that does not exist."""
    from ottla.cli.balance.cluster_load import registered_brokers
    from ottla.cli.failures import Terse

    up, fenced = registered_brokers(admin)
    if node not in up and node not in fenced:
        raise Terse(f"broker {node} does not exist; there are {', '.join(map(str, sorted({*up, *fenced}))) or 'none'}")
    return node in up


def _drain(admin: "Admin", options: Namespace) -> int:
    from ottla.cli.balance.cluster_load import read_load
    from ottla.cli.balance.proposing import CannotPropose, propose
    from ottla.cli.failures import Terse

    node = options.node
    is_up = _refuse_unknown(admin, node)
    load = read_load(admin, lambda _: True, 0.0)
    partitions = [one for one in load.partitions if node in one.replicas]
    others = [place for place in load.brokers.values() if place.id != node]
    if not others and partitions:
        raise CannotPropose(f"broker {node} is the only one that is up: add a broker first")
    proposal = propose(others, load.partitions, emptied={node}, only_emptied=True)
    options.execute = not options.dry_run
    show(proposal, load, options)
    if options.dry_run:
        return 0
    if is_up:
        _cordon(admin, node, "*")
    if proposal.moves:
        path = save(proposal.moves, admin.describe_cluster().cluster_id, options, f"ottla-drain-{node}")
        status = carry_out(admin, proposal.moves, path, options, "ottla node")
        if status:
            return status
    deadline_s = monotonic() + _KNOWN_WITHIN_S
    while left := [one.at for one in read_load(admin, lambda _: True, 0.0).partitions if node in one.replicas]:
        if monotonic() > deadline_s:  # until then, a broker may have been asked that has not heard yet
            raise Terse(f"broker {node} still has {left[0]}, which was made meanwhile; give the command again")
        sleep(_LOOK_S)
    print(f"broker {node} has no replicas")
    return 0


def _cordon(admin: "Admin", node: int, value: str | None) -> None:
    """Has it get no new replicas, or again (KIP-1066), where brokers know how to."""
    from ottla.client.admin.configs import ConfigResource
    from ottla.client.errors import KafkaError

    try:
        admin.incremental_alter_configs({ConfigResource.broker(node): {_CORDONED: value}}).raise_first()
    except KafkaError as problem:
        print(
            f"ottla node: broker {node} may get replicas of new topics meanwhile: it cannot be cordoned ({problem})",
            file=sys.stderr,
        )


def _undrain(admin: "Admin", options: Namespace) -> int:
    _refuse_unknown(admin, options.node)
    _cordon(admin, options.node, None)
    print(f"broker {options.node} may have replicas; `ottla balance` gives it its share")
    return 0


def _remove(admin: "Admin", options: Namespace) -> int:
    from ottla.cli.failures import Terse
    from ottla.client.errors import KafkaError

    node = options.node
    try:
        voters = {voter.replica_id for voter in admin.describe_metadata_quorum().voters}
    except KafkaError:
        voters = set()
    if node in voters:
        raise Terse(
            f"node {node} is a controller: take its vote away first, with `kafka-metadata-quorum remove-controller "
            f"--controller-id {node} --controller-directory-id DIR` (`describe --replication` has DIR)"
        )
    if status := _drain(admin, options):
        return status
    if options.dry_run:
        return 0
    deadline_s = monotonic() + options.stop_timeout
    if _refuse_unknown(admin, node):
        # Only a broker that is up can be asked, and one that came back under this id would get no replicas.
        _cordon(admin, node, None)
        print(f"stop node {node} now; it is waited for", flush=True)
    while _refuse_unknown(admin, node):
        if monotonic() > deadline_s:
            raise Terse(
                f"broker {node} is still up after {options.stop_timeout:g} s; stop it and give the command again"
            )
        sleep(_LOOK_S)
    if status := _drain(admin, options):  # it may have got replicas in the last moment
        return status
    admin.unregister_broker(node)
    print(f"broker {node} is not part of the cluster any more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
