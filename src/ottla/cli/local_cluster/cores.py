"""`ottla start --cores N`: one machine's cores, as so many brokers and one controller that are run as one.

A node is one thread. Where one is not enough and replicas are not wanted, topics are spread over brokers of one replica
each, and clients find them as in any cluster, from one address. What is on disk is the directories of plain nodes.
"""

import argparse
import os
from pathlib import Path
from typing import Final

from ottla import __version__
from ottla.base.errors import StorageError
from ottla.cli.local_cluster.cluster_layout import (
    NoCluster,
    NodeFiles,
    open_cluster,
    refuse_other_port,
    refuse_single_node,
)
from ottla.cli.start import DEFAULT_PORT
from ottla.cli.text_tables import counted

_OF_ONE_NODE: Final = ("node.id", "process.roles", "listeners", "advertised.listeners", "log.dirs", "log.dir")


def run_cores(options: argparse.Namespace, data: str) -> int:
    """Until TERM or Ctrl-C, or until a node cannot be started again: then all end. Raises `StorageError`, `OSError`."""
    from ottla.cli.local_cluster.supervisor import Supervisor
    from ottla.cli.stopping import stop_on_terminate

    arguments = _arguments(options)
    directory = Path(data).absolute()
    nodes = _nodes(directory, options.cores, options.port)
    supervisor = Supervisor(directory, nodes, arguments=arguments, needs_all=True)
    with stop_on_terminate():
        try:
            supervisor.start()
            try:
                print(_banner(nodes, directory, ephemeral=options.ephemeral), flush=True)
                supervisor.watch()
            finally:
                supervisor.stop()
        except KeyboardInterrupt:
            pass
    return 0


def _arguments(options: argparse.Namespace) -> list[str]:
    """What every node is started with. Raises `ValueError` for what only one node can have."""
    for name in ("config", "metrics", "faults"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} is for one node: it cannot be given with --cores")
    for name in ("host", "advertise", "log_file"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} is for one node: with --cores each has its own files")
    arguments = ["--log-format", options.log_format]
    if options.log_level is not None:
        arguments += ["--log-level", options.log_level]
    arguments += settings_of_all(options.set)
    return [*arguments, "--strict"] if options.strict else arguments


def settings_of_all(settings: list[str]) -> list[str]:
    """As arguments of every node. Raises `ValueError` for a setting that each has its own of."""
    arguments = []
    for setting in settings:
        key, equals, _ = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: it must be KEY=VALUE")
        if key.strip() in _OF_ONE_NODE:
            raise ValueError(f"--set {key.strip()}: each node has its own, in its server.properties")
        arguments += ["--set", setting]
    return arguments


def _nodes(directory: Path, cores: int, port: int | None) -> list[NodeFiles]:
    """Those of the directory, or new ones."""
    from ottla.cli.local_cluster.cluster_making import make_cores

    refuse_single_node(directory, "--cores")
    try:
        nodes = open_cluster(directory)
    except NoCluster:
        return make_cores(directory, cores, DEFAULT_PORT if port is None else port)
    brokers = [node for node in nodes if node.is_broker]
    if any(node.is_controller for node in brokers):
        raise StorageError(f"{directory} is of a replicated cluster: `ottla cluster start` runs it")
    if len(brokers) != cores:
        raise StorageError(
            f"{directory} has {counted(len(brokers), 'broker')}, with partitions of their own: start it with --cores "
            f"{len(brokers)}; `ottla cluster add` adds one while it runs"
        )
    refuse_other_port(directory, brokers[0], port)
    return nodes


def _banner(nodes: list[NodeFiles], directory: Path, *, ephemeral: bool) -> str:
    brokers = [node for node in nodes if node.is_broker]
    others = ", ".join(node.address.rpartition(":")[2] for node in brokers[1:])
    kept = " (removed at the end)" if ephemeral else ""
    return "\n".join(
        [
            f"ottla {__version__} is ready at {brokers[0].address}",
            f"  data     {directory}{os.sep}node-*{kept}",
            f"  cores    {len(brokers)}{f', the other brokers at ports {others}' if others else ''}; one replica",
            "  stop     Ctrl-C; a second one stops at once",
        ]
    )
