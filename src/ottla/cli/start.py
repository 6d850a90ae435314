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
from ottla.cli.help_format import CommandParser

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.config.parse import Warned

_MOMENT_S = 1.0
DEFAULT_PORT = 9092
DEFAULT_HOST = "127.0.0.1"
LOG_DIR_VARIABLE = "LOG_DIR"
DEFAULT_DATA = "ottla-data"
ANY_ADDRESS = "0.0.0.0"
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


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    set_up_log(options)
    if options.ephemeral:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True) as data:
            return _start(options, data)
    return _start(options, options.data)


def set_up_log(options: argparse.Namespace) -> None:
    from ottla.cli.log_format import LogFile, set_up_logging

    try:
        file = None if options.log_file is None else LogFile(options.log_file)
    except OSError as problem:
        raise SystemExit(f"ottla: cannot write to the log {options.log_file}: {problem.strerror}") from None
    level = options.log_level or ("warning" if file is None else "info")
    set_up_logging(options.log_format, level, file=file)


def server_start() -> int:
    """The `kafka-server-start` command."""
    parser = CommandParser(prog="kafka-server-start", description="Starts a node as its file says.")
    parser.add_argument(
        "-daemon",
        action="store_true",
        help=f"run in the background, and log to ${LOG_DIR_VARIABLE}/server.log (default: ./logs/server.log); the exit "
        "code says whether the node came up",
    )
    parser.add_argument("config", metavar="server.properties", help="the node's settings")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="another value for a key")
    add_metrics_option(parser)
    add_log_options(parser, default_level="info")
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args()
    arguments = ["--config", options.config, "--log-format", options.log_format, "--log-level", options.log_level]
    for override in options.override:
        arguments += ["--set", override]
    if options.metrics is not None:
        arguments += ["--metrics", options.metrics]
    if options.log_file is not None:
        arguments += ["--log-file", options.log_file]
    if options.daemon:
        from ottla.cli.daemon import run_detached

        return run_detached(main, arguments, options.log_file)
    return main(arguments)


def add_log_options(parser: argparse.ArgumentParser, default_level: str | None = None) -> None:
    usual = default_level or "warning; info with --log-file"
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="how log lines look")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default=default_level,
        help=f"what is logged (default: {usual})",
    )
    parser.add_argument(
        "--log-file",
        metavar="FILE",
        help="log there instead of to standard error; at 100 MB it is rotated, ten are kept",
    )


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="ottla start", description="Starts a node and runs it until Ctrl-C.")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", default=DEFAULT_DATA, metavar="DIR", help="data directory (default: ./%(default)s)")
    where.add_argument("--ephemeral", action="store_true", help="a temporary directory, removed at the end")
    where.add_argument("--config", metavar="FILE", help="Kafka's server.properties; its directories must be formatted")
    parser.add_argument("--port", type=port, help=f"where to listen (default: {DEFAULT_PORT}; 0 picks a free one)")
    parser.add_argument(
        "--host", metavar="ADDRESS", help=f"of which interface (default: {DEFAULT_HOST}; 0.0.0.0 for all of them)"
    )
    parser.add_argument(
        "--advertise", metavar="HOST[:PORT]", help="the address that clients connect to (default: where it listens)"
    )
    parser.add_argument(
        "--cores",
        type=_count_of_cores,
        metavar="N",
        help="N brokers and a controller, each a process, as one: for as many cores; one replica of everything",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting; may be repeated")
    parser.add_argument("--strict", action="store_true", help="do not start with a setting that has an unknown name")
    add_metrics_option(parser)
    parser.add_argument(
        "--faults",
        type=port,
        metavar="PORT",
        help="let tests ask for faults at this loopback port (0 picks a free one); see docs/testing.md",
    )
    parser.add_argument(
        "--registry",
        metavar="PORT",
        help="a schema registry beside the node: a loopback port, or HOST:PORT; see docs/registry.md",
    )
    parser.add_argument("--registry-config", metavar="FILE", help="its settings, under Confluent's names")
    add_log_options(parser)
    return parser


def add_metrics_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        type=metrics_address,
        metavar="[HOST:]PORT",
        help="serve Prometheus metrics, /healthz and /readyz there: a loopback port, HOST:PORT, or https://HOST:PORT",
    )


def metrics_address(text: str) -> str:
    """The value of `ottla.metrics.listener`; checked with the other settings."""
    scheme, _, rest = text.rpartition("://")
    if rest.isdecimal() and not scheme:
        port(text)
    elif not rest.rpartition(":")[2].rstrip("/").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not an address: it must be PORT, HOST:PORT or https://HOST:PORT")
    return text


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
    from ottla.cli.node_signals import stop_signals
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
            on_ready=lambda node: _on_ready(options, node.summary(), token),
            stop_signals=stop_signals,
            faults=None if token is None else FaultsPort(options.faults, token),
            registry=_registry_properties(options),
            on_opened=_recovery_bar() if sys.stderr.isatty() else None,
        )
    except (OttlaError, OSError, ValueError) as problem:
        return _cannot_start(options, problem)


def _recovery_bar() -> "Callable[[int, int], None]":
    """What is shown on a terminal while logs are opened, if that takes longer than a moment."""
    from time import monotonic

    began_s, shown = monotonic(), None

    def show(count: int, total: int) -> None:
        nonlocal shown
        if shown is None and monotonic() - began_s > _MOMENT_S:
            from ottla.cli.bars import Bar

            shown = Bar(sys.stderr, unit="partitions opened")
        if shown is not None:
            shown.show(count, total)
            if count == total:
                shown.clear()

    return show


def _cannot_start(options: argparse.Namespace, problem: Exception) -> int:
    """In one line on standard error; in the log besides, if that is a file."""
    reason = str(problem)
    if isinstance(problem, OSError) and problem.strerror:
        reason = f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    if options.log_file is not None:
        import logging

        logging.getLogger("ottla").critical("cannot start: %s", reason)
    if (daemon := sys.modules.get("ottla.cli.daemon")) is not None:
        daemon.tell_failed(reason)
    if options.log_format == "json":
        from ottla.cli.log_format import print_json_line

        print_json_line(reason, level="critical")
    else:
        print(f"ottla: {reason}", file=sys.stderr)
    return 1


def _on_ready(options: argparse.Namespace, summary: dict[str, str], token: str | None) -> None:
    if options.log_format == "json":
        from ottla.cli.log_format import print_json_line

        print_json_line(f"ottla {__version__} is ready at {summary['address']}", **summary)
    else:
        _banner(summary, ephemeral=options.ephemeral, token=token)
    if (daemon := sys.modules.get("ottla.cli.daemon")) is not None:
        daemon.tell_ready(summary)


def _registry_properties(options: argparse.Namespace) -> dict[str, str] | None:
    """The settings of the registry that is to run beside the node; None if none is. Raises `ValueError`."""
    if options.registry is None and options.registry_config is None:
        return None
    properties: dict[str, str] = {}
    if options.registry_config is not None:
        from ottla.config.properties import read_properties

        properties = read_properties(_bytes_of(options.registry_config))
    if options.registry is not None:
        host, _, number = options.registry.rpartition(":")
        if not number.isdecimal() or int(number) > 65535:
            raise ValueError(f"--registry {options.registry}: it must be a port, or HOST:PORT")
        properties["listeners"] = f"http://{host or '127.0.0.1'}:{number}"
    return properties


def _start_cores(options: argparse.Namespace, data: str) -> int:
    from ottla.base.errors import OttlaError
    from ottla.cli.local_cluster.cores import run_cores

    try:
        if options.registry is not None:
            raise ValueError("--registry is for one node; with --cores, start `ottla registry start` beside it")
        return run_cores(options, data)
    except (OttlaError, OSError, ValueError) as problem:
        return _cannot_start(options, problem)


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
        if options.port is not None or options.host is not None:
            listeners = properties.get("listeners", f"PLAINTEXT://:{DEFAULT_PORT}")
            properties["listeners"] = _with_address(listeners, options.host, options.port)
    else:
        number = DEFAULT_PORT if options.port is None else options.port
        _refuse_directory_of_nodes(data)
        properties = _cluster_of_one(os.path.abspath(data), options.host or DEFAULT_HOST, number)
    if options.advertise is not None:
        properties["advertised.listeners"] = _advertised(properties["listeners"], options.advertise)
    elif options.host == ANY_ADDRESS and "advertised.listeners" not in properties:
        raise ValueError(
            f"--host {ANY_ADDRESS} is where to listen, and clients need an address to connect to: add --advertise "
            "HOST, the name or address that they reach this machine by"
        )
    if (metrics := getattr(options, "metrics", None)) is not None:  # `ottla doctor` has no such option.
        properties["ottla.metrics.listener"] = metrics
    return properties | given_settings(options.set)


def given_settings(texts: list[str]) -> dict[str, str]:
    """What `--set` says, each KEY=VALUE. Raises `ValueError`."""
    found: dict[str, str] = {}
    for setting in texts:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: it must be KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def _refuse_directory_of_nodes(data: str) -> None:
    """A node of its own among the directories of others would be a cluster that knows nothing of them."""
    if os.path.exists(os.path.join(data, "node-1", "server.properties")):
        raise ValueError(f"{data} has the nodes of a cluster: start them with --cores N or `ottla cluster start`")


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _cluster_of_one(data: str, host: str, port: int) -> dict[str, str]:
    """The settings of a node that nobody configured. Topics of one replica are all that one node can have."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        # The controllers' listener is for other nodes, of which there are none: any free port will do.
        "listeners": f"PLAINTEXT://{_bracketed(host)}:{port},CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": data,
        **FOR_ONE_MACHINE,
    }


def _with_address(listeners: str, host: str | None, port: int | None) -> str:
    """The first listener, elsewhere."""
    first, *rest = listeners.split(",")
    name, _, address = first.partition("://")
    own_host, _, own_port = address.rpartition(":")
    where = own_host if host is None else _bracketed(host)
    return ",".join([f"{name}://{where}:{own_port if port is None else port}", *rest])


def _advertised(listeners: str, given: str) -> str:
    """For the first listener, which is the clients'."""
    name, _, address = listeners.partition(",")[0].partition("://")
    host, colon, number = given.rpartition(":")
    if not colon or not number.isdecimal() or (":" in host and not host.endswith("]")):
        host, number = given, address.rpartition(":")[2]
    return f"{name}://{_bracketed(host.strip('[]'))}:{number}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _banner(summary: dict[str, str], *, ephemeral: bool, token: str | None) -> None:
    from ottla.records import kernel

    kept = " (removed at the end)" if ephemeral else ""
    lines = [f"ottla {__version__} is ready at {summary['address']}"]
    lines += [f"  data     {summary['data']}{kept}", f"  cluster  {summary['cluster']}, node {summary['node']}"]
    if "metrics" in summary:
        lines.append(f"  metrics  {summary['metrics']}")
    if "registry" in summary:
        lines.append(f"  registry {summary['registry']}")
    if "faults" in summary:
        shown = f"of {FAULTS_TOKEN}" if os.environ.get(FAULTS_TOKEN) else token
        lines.append(f"  faults   {summary['faults']} (token {shown})")
    if not kernel.IS_COMPILED:
        lines.append("  speed    pure Python, several times slower: `ottla doctor` says what to install")
    lines.append("  stop     Ctrl-C; a second one stops at once")
    print("\n".join(lines), flush=True)
