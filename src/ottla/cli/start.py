"""`ottla start`: a node from nothing, and `kafka-server-start`: a node from Kafka's configuration file.

Without a configuration file the node is a cluster of one: broker and controller in a process, data in ./ottla-data,
which is formatted when it is new. With one, everything is as the file says, and the directories must have been
formatted (`kafka-storage format`), as Apache Kafka wants it. With `--cores` there are several nodes, each in a process
of its own, and this one watches over them.
"""

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING

from ottla import __version__
from ottla.base.deferred_imports import defer
from ottla.cli.help_format import help_formatter

if TYPE_CHECKING:
    from ottla.config.parse import Warned

DEFAULT_PORT = 9092
DEFAULT_DATA = "ottla-data"
FAULTS_TOKEN = "OTTLA_FAULTS_TOKEN"
MOST_CORES = 100

FOR_ONE_MACHINE = {
    # Kafka's 100 KB of socket buffers and backlog of 50 are for other times: the system knows better.
    "socket.send.buffer.bytes": "-1",
    "socket.receive.buffer.bytes": "-1",
    "socket.listen.backlog.size": "1000",
    # One person's first consumer is not to wait for others.
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""What nobody configured, where there are no replicas."""

RARELY_USED = ("ssl", "asyncio.sslproto", "hashlib", "hmac", "uuid", "cramjam", "inspect", "locale")
"""What is imported by something that every node needs, and used by few, or late."""


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    defer(*RARELY_USED)
    from ottla.cli.log_format import set_up_logging

    set_up_logging(options.log_format, options.log_level)
    if options.ephemeral:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True) as data:
            return _start(options, data)
    return _start(options, options.data)


def server_start() -> int:
    """The `kafka-server-start` command."""
    parser = argparse.ArgumentParser(
        prog="kafka-server-start", description="Starts a node as its file says.", formatter_class=help_formatter
    )
    parser.add_argument("-daemon", action="store_true", help="run in the background, detached from the terminal")
    parser.add_argument("config", metavar="server.properties", help="the node's settings")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="another value for a key")
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args()
    if options.daemon:
        _detach()
    arguments = ["--config", options.config]
    for override in options.override:
        arguments += ["--set", override]
    return main(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla start", description="Starts a node and runs it until Ctrl-C.", formatter_class=help_formatter
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", default=DEFAULT_DATA, metavar="DIR", help="data directory (default: ./%(default)s)")
    where.add_argument("--ephemeral", action="store_true", help="a temporary directory, removed at the end")
    where.add_argument("--config", metavar="FILE", help="Kafka's server.properties; its directories must be formatted")
    parser.add_argument("--port", type=port, help=f"port on 127.0.0.1 (default: {DEFAULT_PORT}; 0 picks a free one)")
    parser.add_argument(
        "--cores",
        type=_count_of_cores,
        metavar="N",
        help="N brokers and a controller, each a process, as one: for as many cores; one replica of everything",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting; may be repeated")
    parser.add_argument("--strict", action="store_true", help="do not start with a setting that has an unknown name")
    parser.add_argument("--metrics", type=port, metavar="PORT", help="serve Prometheus metrics on this loopback port")
    parser.add_argument(
        "--faults",
        type=port,
        metavar="PORT",
        help="let tests ask for faults at this loopback port (0 picks a free one); see docs/testing.md",
    )
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="how log lines look")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="warning")
    return parser


def port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: it must be a number from 0 to 65535")


def _count_of_cores(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= MOST_CORES:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of cores: it must be from 1 to {MOST_CORES}")


def _start(options: argparse.Namespace, data: str) -> int:
    if options.cores is not None:
        return _start_cores(options, data)
    gc.disable()  # Imports make things that stay: to look for garbage among them is a tenth of the time to start.
    from ottla.base.errors import OttlaError
    from ottla.node.config import read_config
    from ottla.node.run import FaultsPort, run_node

    gc.freeze()
    gc.enable()
    try:
        properties = node_properties(options, data)
        config = read_config(properties)
        if options.strict:
            _refuse_unknown(config.warnings)
        token = None if options.faults is None else _faults_token()
        return run_node(
            config,
            may_format=options.config is None,
            metrics_port=options.metrics,
            on_ready=lambda node: _banner(node.summary(), ephemeral=options.ephemeral, token=token),
            faults=None if token is None else FaultsPort(options.faults, token),
        )
    except (OttlaError, OSError, ValueError) as problem:
        print(f"ottla: {problem}", file=sys.stderr)
        return 1


def _start_cores(options: argparse.Namespace, data: str) -> int:
    from ottla.base.errors import OttlaError
    from ottla.cli.local_cluster.cores import run_cores

    try:
        return run_cores(options, data)
    except (OttlaError, OSError, ValueError) as problem:
        print(f"ottla: {problem}", file=sys.stderr)
        return 1


def _refuse_unknown(warnings: "tuple[Warned, ...]") -> None:
    unknown = [f"{warning.key}: {warning.reason}" for warning in warnings if warning.is_unknown]
    if unknown:
        raise ValueError("\n".join(unknown))


def _faults_token() -> str:
    """The one that is given (OTTLA_FAULTS_TOKEN), or a new one."""
    if given := os.environ.get(FAULTS_TOKEN):
        return given
    from secrets import token_urlsafe

    return token_urlsafe(16)


def node_properties(options: argparse.Namespace, data: str) -> dict[str, str]:
    """The settings of the node that `--config`, `--port` and `--set` describe; `data` is for a node without a file."""
    if options.config is not None:
        from ottla.config.properties import read_properties

        properties = read_properties(_bytes_of(options.config))
        if options.port is not None:
            properties["listeners"] = _with_port(properties.get("listeners", "PLAINTEXT://:9092"), options.port)
    else:
        number = DEFAULT_PORT if options.port is None else options.port
        _refuse_directory_of_nodes(data)
        properties = _cluster_of_one(os.path.abspath(data), number)
    for setting in options.set:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: it must be KEY=VALUE")
        properties[key.strip()] = value.strip()
    return properties


def _refuse_directory_of_nodes(data: str) -> None:
    """A node of its own among the directories of others would be a cluster that knows nothing of them."""
    if os.path.exists(os.path.join(data, "node-1", "server.properties")):
        raise ValueError(f"{data} has the nodes of a cluster: start them with --cores N or `ottla cluster start`")


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _cluster_of_one(data: str, port: int) -> dict[str, str]:
    """The settings of a node that nobody configured. Topics of one replica are all that one node can have."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        # The controllers' listener is for other nodes, of which there are none: any free port will do.
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": data,
        **FOR_ONE_MACHINE,
    }


def _with_port(listeners: str, port: int) -> str:
    first, *rest = listeners.split(",")
    return ",".join([f"{first.rpartition(':')[0]}:{port}", *rest])


def _banner(summary: dict[str, str], *, ephemeral: bool, token: str | None) -> None:
    kept = " (removed at the end)" if ephemeral else ""
    lines = [f"ottla {__version__} is ready at {summary['address']}"]
    lines += [f"  data     {summary['data']}{kept}", f"  cluster  {summary['cluster']}, node {summary['node']}"]
    if "metrics" in summary:
        lines.append(f"  metrics  {summary['metrics']}")
    if "faults" in summary:
        shown = f"of {FAULTS_TOKEN}" if os.environ.get(FAULTS_TOKEN) else token
        lines.append(f"  faults   {summary['faults']} (token {shown})")
    lines.append("  stop     Ctrl-C; a second one stops at once")
    print("\n".join(lines), flush=True)


def _detach() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    devnull = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(devnull, fd)
