"""`kafka-metadata-quorum`: the controllers, who of them leads, how far each is; adding and removing them."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.base.ids import parse_uuid
from ottla.cli.failures import Terse
from ottla.cli.json_output import print_json
from ottla.cli.options.subcommands import ToolParser, add_connection, add_json, integer, run_command
from ottla.cli.sessions import open_admin
from ottla.cli.text_tables import tabbed_table

if TYPE_CHECKING:
    from ottla.client.admin.quorum_voters import QuorumInfo, QuorumReplica, VoterEndpoint
    from ottla.client.blocking.admin import Admin

NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


def main(arguments: list[str]) -> int:
    return run_command(_parser(), arguments, help_status=0)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-metadata-quorum", "The tool for the quorum of controllers.")
    add_connection(parser)
    config_help = "properties file with settings of the admin; for add-controller, the file of the new controller"
    parser.add_argument("--command-config", help=config_help)
    commands = parser.add_subparsers(metavar="{describe,add-controller,remove-controller}", required=True)

    describe = commands.add_parser("describe", help="print the state of the quorum")
    describe.add_argument("--status", action="store_true", help="in short")
    describe.add_argument("--replication", action="store_true", help="each replica of the metadata")
    describe.add_argument("--human-readable", action="store_true", help="with --replication: how long ago, not when")
    add_json(describe)
    describe.set_defaults(action=_describe)

    add = commands.add_parser("add-controller", help="make a controller a voter")
    add.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add.set_defaults(action=_add)

    remove = commands.add_parser("remove-controller", help="take a controller's vote away")
    remove.add_argument("--controller-id", "-i", type=integer, required=True, help="the controller")
    remove.add_argument("--controller-directory-id", "-d", required=True, help="the id of its metadata directory")
    remove.add_argument("--dry-run", action="store_true", help="only say what would be done")
    remove.set_defaults(action=_remove)
    return parser


def _admin(options: Namespace, config_file: str | None) -> Admin:
    return open_admin(options.bootstrap_server, controllers=options.bootstrap_controller, config_file=config_file)


def _describe(options: Namespace) -> int:
    if options.status and options.replication:
        raise Terse("Only one of --status or --replication should be specified with describe sub-command")
    if options.json and options.human_readable:
        raise Terse("The option --human-readable is not for --json, which has times")
    if options.replication:
        with _admin(options, options.command_config) as admin:
            quorum = admin.describe_metadata_quorum()
        if options.json:
            print_json(quorum)
            return 0
        lines = replication_lines(quorum, int(time.time() * 1000) if options.human_readable else None)
    elif options.status:
        if options.human_readable:
            raise Terse("The option --human-readable is only supported along with --replication")
        with _admin(options, options.command_config) as admin:
            cluster_id = admin.describe_cluster().cluster_id
            quorum = admin.describe_metadata_quorum()
        if options.json:
            print_json({"cluster_id": cluster_id, **quorum._asdict()})
            return 0
        lines = status_lines(cluster_id, quorum)
    else:
        raise Terse("One of --status or --replication must be specified with describe sub-command")
    for line in lines:
        print(line)
    return 0


def status_lines(cluster_id: str, quorum: QuorumInfo) -> Iterator[str]:
    leader = next((one for one in quorum.voters if one.replica_id == quorum.leader_id), None)
    followers = [one for one in quorum.voters if one.replica_id != quorum.leader_id]
    end = 0 if leader is None else leader.log_end_offset
    lag = max((end - one.log_end_offset for one in followers), default=0)
    lines = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": lag,
        "MaxFollowerLagTimeMs": _lag_ms(leader, followers),
        "CurrentVoters": _nodes(quorum.voters, quorum),
        "CurrentObservers": _nodes(quorum.observers, quorum),
    }
    for name, value in lines.items():
        yield f"{name + ':':24}{value}"


def _lag_ms(leader: QuorumReplica | None, followers: Sequence[QuorumReplica]) -> int:
    """How long ago the slowest follower had caught up; -1 if that is not known."""
    if leader is None or leader.last_caught_up_timestamp_ms is None:
        return -1 if followers else 0
    slowest = 0
    for follower in followers:
        if follower.last_caught_up_timestamp_ms is None:
            return -1
        slowest = max(slowest, leader.last_caught_up_timestamp_ms - follower.last_caught_up_timestamp_ms)
    return slowest


def _nodes(replicas: Sequence[QuorumReplica], quorum: QuorumInfo) -> str:
    return f"[{', '.join(_node(one, quorum.nodes.get(one.replica_id, ())) for one in replicas)}]"


def _node(replica: QuorumReplica, endpoints: Sequence[VoterEndpoint]) -> str:
    parts = [f'"id": {replica.replica_id}']
    if replica.directory_id is not None:
        parts.append(f'"directoryId": "{replica.directory_id}"')
    if endpoints:
        listed = ", ".join(f'"{one.name}://{_host(one.host)}:{one.port}"' for one in endpoints)
        parts.append(f'"endpoints": [{listed}]')
    return f"{{{', '.join(parts)}}}"


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def replication_lines(quorum: QuorumInfo, now_ms: int | None) -> Iterator[str]:
    """Times are times, or how long ago if `now_ms` is given."""
    leader = next((one for one in quorum.voters if one.replica_id == quorum.leader_id), None)
    followers = [one for one in quorum.voters if one.replica_id != quorum.leader_id]
    end = 0 if leader is None else leader.log_end_offset
    rows = []
    for status, replicas in (
        ("Leader", [] if leader is None else [leader]),
        ("Follower", followers),
        ("Observer", quorum.observers),
    ):
        for one in replicas:
            times = (one.last_fetch_timestamp_ms, one.last_caught_up_timestamp_ms)
            rows.append(
                [
                    str(one.replica_id),
                    one.directory_id or NO_DIRECTORY,
                    str(one.log_end_offset),
                    str(end - one.log_end_offset),
                    *(_time(moment, now_ms) for moment in times),
                    status,
                ]
            )
    header = ["NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"]
    return tabbed_table(header, rows)


def _time(moment_ms: int | None, now_ms: int | None) -> str:
    if moment_ms is None:
        return "-1"
    return str(moment_ms) if now_ms is None else f"{max(now_ms - moment_ms, 0)} ms ago"


def _remove(options: Namespace) -> int:
    try:
        parse_uuid(options.controller_directory_id)
    except ValueError as problem:
        raise Terse(f"Failed to parse --controller-directory-id: {problem}") from None
    if options.controller_id < 0:
        raise Terse(f"Invalid negative --controller-id: {options.controller_id}")
    named = f"KRaft controller {options.controller_id} with directory id {options.controller_directory_id}"
    if options.dry_run:
        print(f"DRY RUN of removing  {named}")
        return 0
    with _admin(options, options.command_config) as admin:
        admin.remove_raft_voter(options.controller_id, options.controller_directory_id)
    print(f"Removed  {named}")
    return 0


def _add(options: Namespace) -> int:
    if options.command_config is None:
        raise Terse(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    from ottla.cli.cluster.new_controller import read_new_controller

    controller = read_new_controller(options.command_config)
    named = f"controller {controller.id} with directory id {controller.directory_id}"
    endpoints = ", ".join(f"{one.name}://{_host(one.host)}:{one.port}" for one in controller.endpoints)
    if not options.dry_run:
        with _admin(options, None) as admin:
            admin.add_raft_voter(controller.id, controller.directory_id, controller.endpoints)
    print(f"{'DRY RUN of adding' if options.dry_run else 'Added'} {named} and endpoints: {endpoints}")
    return 0
