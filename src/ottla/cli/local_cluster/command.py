"""`ottla cluster start`, `status`, `stop`, `kill`, `restart`, `add` and `roll`: several nodes on this machine.

What `kafka-cluster` does (`cluster-id`, `unregister`, `list-endpoints`) is under the same name.
"""

import argparse
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.base.errors import OttlaError
from ottla.cli.help_format import CommandParser
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.cli.local_cluster.cluster_layout import NodeFiles
    from ottla.cli.local_cluster.rolling import Member

DEFAULT_DATA: Final = "ottla-cluster"
_NEW_NODES: Final = 3
_OF_KAFKA: Final = ("cluster-id", "unregister", "list-endpoints")


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in _OF_KAFKA:
        from ottla.cli.cluster.cluster import main as kafka_cluster

        return kafka_cluster(arguments)
    options = _parser().parse_args(arguments)
    try:
        result: int = options.action(options)
        return result
    except (OttlaError, OSError, ValueError) as problem:
        print(f"ottla: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    from ottla.cli.start import DEFAULT_PORT, metrics_address, port

    parser = CommandParser(
        prog="ottla cluster",
        description="A cluster of several nodes on this machine.",
        epilog=f"{', '.join(_OF_KAFKA)}: as kafka-cluster has them.",
    )
    commands = parser.add_subparsers(metavar="{start,status,stop,kill,restart,add,roll}", required=True)
    start = commands.add_parser("start", help="start a cluster, and run it until Ctrl-C")
    status = commands.add_parser("status", help="print what its nodes do")
    stop = commands.add_parser("stop", help="stop all nodes in good order")
    kill = commands.add_parser("kill", help="end a node at once, as a crash would")
    restart = commands.add_parser("restart", help="stop a node in good order if it runs, and start it again")
    add = commands.add_parser("add", help="let a further broker join while the cluster runs")
    roll = commands.add_parser(
        "roll",
        help="restart all nodes one at a time, each only when all is in sync",
        description="Restarts nodes one at a time, the active controller last, each only when all replicas and "
        "controllers are in sync; stops when something is not. Without --command, the nodes of --data on this machine.",
    )
    actions = {start: _start, status: _status, stop: _stop, kill: _kill, restart: _restart, add: _add, roll: _roll}
    for command, action in actions.items():
        command.add_argument(
            "--data", default=DEFAULT_DATA, metavar="DIR", help="its directory (default: ./%(default)s)"
        )
        command.set_defaults(action=action)
    start.add_argument(
        "--nodes", type=_count, metavar="N", help=f"how many nodes a new cluster has (default: {_NEW_NODES})"
    )
    start.add_argument(
        "--port",
        type=port,
        help=f"of the first node of a new cluster; the others follow (default: {DEFAULT_PORT}; 0 picks free ones)",
    )
    start.add_argument(
        "--security",
        choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
        help="of a new cluster (default: plaintext): certificates and a login are made, with DIR/client.properties",
    )
    start.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every node; may be repeated"
    )
    start.add_argument(
        "--metrics",
        type=metrics_address,
        metavar="[HOST:]PORT",
        help="serve metrics of the first node there, and of the others at the ports that follow (0 picks free ones)",
    )
    start.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="log level of every node's node.log"
    )
    start.add_argument("--log-format", choices=("text", "json"), help="format of the lines in node.log")
    _add_roll(roll)
    for command in (kill, restart):
        command.add_argument("node", type=int, metavar="NODE", help="the node's id")
    return parser


def _add_roll(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.records.connecting import add_connection

    add_connection(parser)
    parser.set_defaults(of_variable=parser.get_default("bootstrap_server"), bootstrap_server=None)
    parser.add_argument(
        "--command",
        metavar="COMMAND",
        help="restarts a node of the cluster of -b; {id} and {host} stand for the node's, as in "
        "'ssh {host} sudo systemctl restart ottla'. It returns when the node is up, or is starting",
    )
    parser.add_argument("--only", type=_ids, metavar="ID,…", help="only these nodes (default: all)")
    parser.add_argument(
        "--sync-timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="for all to be in sync again (default: 300)",
    )


def _ids(text: str) -> frozenset[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r}: it must be node ids, as 1,2,3")
    return frozenset(map(int, words))


def _count(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 100:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes: it must be from 1 to 100")


def _start(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.cluster_layout import bootstrap
    from ottla.cli.local_cluster.cluster_security import client_properties
    from ottla.cli.local_cluster.cluster_status import node_line
    from ottla.cli.local_cluster.supervisor import Supervisor
    from ottla.cli.stopping import stop_on_terminate

    directory = Path(options.data).absolute()
    arguments = _arguments(options)
    nodes = _nodes(directory, options.nodes, options.port, options.security)
    supervisor = Supervisor(directory, nodes, arguments=arguments)
    with stop_on_terminate():
        try:
            supervisor.start()
            try:
                for node in nodes:
                    print(node_line(node))
                if client_properties(directory).exists():
                    print(f"clients   need {client_properties(directory)} (--command-config)")
                print(f"bootstrap {bootstrap(nodes)}; Ctrl-C stops the cluster", flush=True)
                supervisor.watch(_show if sys.stdout.isatty() else None)
            finally:
                print("\nstopping", flush=True)
                supervisor.stop()
        except KeyboardInterrupt:
            pass
    return 0


def _arguments(options: argparse.Namespace) -> list[str]:
    """What every node is started with. Raises `ValueError` for what each has its own of."""
    from ottla.cli.local_cluster.cores import settings_of_all

    arguments = settings_of_all(options.set)
    if options.metrics is not None:
        arguments += ["--metrics", options.metrics]
    if options.log_level is not None:
        arguments += ["--log-level", options.log_level]
    if options.log_format is not None:
        arguments += ["--log-format", options.log_format]
    return arguments


def _nodes(directory: Path, count: int | None, port: int | None, security: str | None) -> "list[NodeFiles]":
    """Those of the directory, if they are what was asked for, or new ones."""
    from ottla.cli.local_cluster.cluster_layout import NoCluster, open_cluster, refuse_other_port, refuse_single_node
    from ottla.cli.local_cluster.cluster_making import make_cluster
    from ottla.cli.local_cluster.cluster_security import security_of
    from ottla.cli.start import DEFAULT_PORT
    from ottla.config.properties import read_properties

    refuse_single_node(directory, "a cluster")
    try:
        nodes = open_cluster(directory)
    except NoCluster:
        return make_cluster(
            directory, count or _NEW_NODES, DEFAULT_PORT if port is None else port, security or "plaintext"
        )
    brokers = [node for node in nodes if node.is_broker]
    if not any(node.is_controller for node in brokers):
        raise ValueError(f"{directory} is of one machine's cores: `ottla start --cores {len(brokers)}` runs it")
    if count is not None and count != len(nodes):
        raise ValueError(
            f"{directory} has {counted(len(nodes), 'node')}: leave --nodes out; `ottla cluster add` adds one while it "
            "runs"
        )
    refuse_other_port(directory, brokers[0], port)
    there = security_of(read_properties(brokers[0].properties.read_bytes())["listeners"])
    if security is not None and security != there:
        raise ValueError(f"{directory} is of a cluster that speaks {there}: leave --security out")
    return nodes


def _show(nodes: "list[NodeFiles]") -> None:
    from ottla.cli.local_cluster.cluster_status import state_line

    print(f"\r\x1b[K{state_line(nodes)}", end="", flush=True)


def _status(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.cluster_layout import open_cluster
    from ottla.cli.local_cluster.cluster_status import node_line, state_line

    nodes = open_cluster(Path(options.data))
    for node in nodes:
        print(node_line(node))
    print(state_line(nodes))
    return 0


def _stop(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.cluster_layout import open_cluster
    from ottla.cli.local_cluster.supervisor import stop_nodes
    from ottla.cli.local_cluster.supervisor_lock import supervisor_pid

    directory = Path(options.data)
    stop_nodes(open_cluster(directory))
    if (pid := supervisor_pid(directory)) is not None:
        with suppress(ProcessLookupError):  # It ends by itself once all nodes have stopped.
            os.kill(pid, signal.SIGTERM)
    return 0


def _kill(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.node_process import send_signal, wait_until_gone

    node = _node(options)
    node.down.touch()
    if not send_signal(node, signal.SIGKILL):
        raise ValueError(f"node {node.node_id} does not run")
    wait_until_gone([node], 10)
    return 0


def _restart(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.cluster_layout import open_cluster
    from ottla.cli.local_cluster.node_process import running_pid
    from ottla.cli.local_cluster.supervisor_lock import supervisor_pid

    node = _node(options)
    directory = Path(options.data)
    nodes = open_cluster(directory)
    if supervisor_pid(directory) is None and not any(running_pid(one) for one in nodes if one.is_controller):
        raise ValueError(f"the cluster in {directory} does not run: `ottla cluster start` starts all its nodes")
    _restart_node(node)
    return 0


def _restart_node(node: "NodeFiles") -> None:
    """In good order if it runs. Returns when it is ready."""
    from ottla.cli.local_cluster.node_process import send_signal, start_process, wait_until_gone, wait_until_ready
    from ottla.cli.local_cluster.supervisor import START_S, STOP_S

    node.down.touch()
    if send_signal(node, signal.SIGTERM):
        wait_until_gone([node], STOP_S)
    start_process(node)
    wait_until_ready([node], START_S)


def _roll(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.cluster_layout import bootstrap, open_cluster
    from ottla.cli.local_cluster.cluster_security import client_properties
    from ottla.cli.local_cluster.rolling import Member, RollStopped, members, roll
    from ottla.cli.records.connecting import Cluster
    from ottla.config.scopes import Scope

    nodes = {}
    if options.command is not None:
        options.bootstrap_server = options.bootstrap_server or options.of_variable
    elif options.bootstrap_server is not None:
        raise RollStopped(
            "-b needs --command, which restarts a node there; without both, the nodes of --data on this machine are "
            "restarted"
        )
    else:
        nodes = {node.node_id: node for node in open_cluster(Path(options.data))}
        options.bootstrap_server = bootstrap(list(nodes.values()))
        made_with_it = client_properties(Path(options.data))
        if options.command_config is None and made_with_it.exists():
            options.command_config = str(made_with_it)

    def restart(member: Member) -> None:
        if options.command is None:
            _restart_node(nodes[member.id])
        else:
            _run_command(options.command, member)

    with Cluster.of(options, Scope.ADMIN).admin() as admin:
        known = [Member(node.node_id, node.is_broker) for node in nodes.values()] or members(admin)
        if unknown := sorted((options.only or frozenset()) - {node.id for node in known}):
            raise RollStopped(f"there is no node {unknown[0]}; there are {', '.join(str(node.id) for node in known)}")
        chosen = [node for node in known if options.only is None or node.id in options.only]
        roll(admin, chosen, restart, options.sync_timeout, lambda line: print(line, flush=True))
    return 0


def _run_command(command: str, member: "Member") -> None:
    import subprocess

    from ottla.cli.local_cluster.rolling import RollStopped

    words = command.replace("{id}", str(member.id)).replace("{host}", member.host or "")
    done = subprocess.run(words, shell=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RollStopped(f"stopped: the command for node {member.id} ended with {done.returncode}: {words}")


def _add(options: argparse.Namespace) -> int:
    from ottla.cli.local_cluster.cluster_layout import open_cluster
    from ottla.cli.local_cluster.cluster_making import make_broker
    from ottla.cli.local_cluster.cluster_status import node_line
    from ottla.cli.local_cluster.node_process import running_pid, start_process, wait_until_ready
    from ottla.cli.local_cluster.supervisor import START_S

    directory = Path(options.data).absolute()
    nodes = open_cluster(directory)
    if not any(running_pid(node) for node in nodes if node.is_controller):
        raise ValueError(f"the cluster in {directory} does not run: there is nothing that a node could join")
    node = make_broker(directory, nodes)
    start_process(node)
    wait_until_ready([node], START_S)
    print(node_line(node))
    return 0


def _node(options: argparse.Namespace) -> "NodeFiles":
    from ottla.cli.local_cluster.cluster_layout import open_cluster

    for node in open_cluster(Path(options.data)):
        if node.node_id == options.node:
            return node
    raise ValueError(f"the cluster in {options.data} has no node {options.node}")
