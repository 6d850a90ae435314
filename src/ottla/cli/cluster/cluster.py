"""`kafka-cluster`: the cluster's id, its endpoints, and unregistering brokers that are gone."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.cli.failures import Terse
from ottla.cli.json_output import print_json
from ottla.cli.options.subcommands import ToolParser, add_connection, add_json, integer, run_command
from ottla.cli.sessions import open_admin

if TYPE_CHECKING:
    from ottla.client.admin.cluster_nodes import ClusterDescription
    from ottla.client.blocking.admin import Admin
    from ottla.client.topic_partition import Broker


def main(arguments: list[str]) -> int:
    return run_command(_parser(), arguments)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-cluster", "The tool for the cluster as a whole.")
    commands = parser.add_subparsers(metavar="{cluster-id,unregister,list-endpoints}", required=True)
    cluster_id = commands.add_parser("cluster-id", help="print the cluster's id")
    unregister = commands.add_parser("unregister", help="unregister a broker")
    endpoints = commands.add_parser("list-endpoints", help="print the addresses of brokers or controllers")
    for command, action in ((cluster_id, _cluster_id), (unregister, _unregister), (endpoints, _list_endpoints)):
        add_connection(command, short=True)
        command.add_argument("--config", help="(DEPRECATED) use --command-config")
        command.add_argument("--command-config", "-c", help="properties file with settings of the admin")
        command.set_defaults(action=action)
    for command in (cluster_id, endpoints):
        add_json(command)
    unregister.add_argument("--id", "-i", type=integer, required=True, help="the broker")
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="also brokers that are fenced")
    return parser


def _admin(options: Namespace) -> Admin:
    if options.config and options.command_config:
        raise Terse("Only one of --config and --command-config may be given")
    if options.config:
        print(
            "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
        )
    config_file = options.command_config or options.config
    return open_admin(options.bootstrap_server, controllers=options.bootstrap_controller, config_file=config_file)


def _cluster_id(options: Namespace) -> int:
    with _admin(options) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    if options.json:
        print_json({"cluster_id": cluster_id})
        return 0
    print("The cluster does not tell its id." if cluster_id is None else f"Cluster ID: {cluster_id}")
    return 0


def _unregister(options: Namespace) -> int:
    from ottla.client.errors import UnsupportedVersion

    with _admin(options) as admin:
        try:
            admin.unregister_broker(options.id)
        except UnsupportedVersion:
            print("The target cluster does not support the broker unregistration API.")
        else:
            print(f"Broker {options.id} is no longer registered.")
    return 0


def _list_endpoints(options: Namespace) -> int:
    if options.bootstrap_controller and options.include_fenced_brokers:
        raise Terse("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    with _admin(options) as admin:
        described = admin.describe_cluster(include_fenced_brokers=options.include_fenced_brokers)
    if options.json:
        print_json(endpoint_documents(described, are_controllers=bool(options.bootstrap_controller)))
        return 0
    for line in endpoint_lines(described.nodes, described.fenced, are_controllers=bool(options.bootstrap_controller)):
        print(line)
    return 0


def endpoint_lines(nodes: Sequence[Broker], fenced: Collection[int], *, are_controllers: bool) -> Iterator[str]:
    """A table of nodes in the order of their ids. Controllers have no state."""
    host_width = max((len(node.host) for node in nodes), default=100)
    rack_width = max((len(node.rack) for node in nodes if node.rack), default=10)
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    kind = "controller" if are_controllers else "broker"
    for node in sorted(nodes, key=lambda node: node.id):
        state = "fenced" if node.id in fenced else "unfenced"
        rows.append((str(node.id), node.host, str(node.port), node.rack or "null", state, kind))
    for number, host, port, rack, state, kind in rows:
        stated = "" if are_controllers else f"{state:10} "
        yield f"{number:10} {host:{host_width}} {port:10} {rack:{rack_width}} {stated}{kind:15}"


def endpoint_documents(described: ClusterDescription, *, are_controllers: bool) -> list[dict[str, object]]:
    """The same for `--json`."""
    return [
        {
            **node._asdict(),
            **({} if are_controllers else {"state": "fenced" if node.id in described.fenced else "unfenced"}),
            "type": "controller" if are_controllers else "broker",
        }
        for node in sorted(described.nodes, key=lambda node: node.id)
    ]
