"""`kafka-server-stop`: asks the nodes of this machine to stop, all of them or those of a role or an id.

Apache Kafka's script sends the signal to every process whose command line looks like a node's. Here only processes
of the calling user count, and only Python that runs `ottla start` or `kafka-server-start`. As in Kafka:

- `--process-role=ROLE` stops the nodes that have this role, `--node-id=ID` the one with this id; the id wins.
- The signal is TERM, or the one in the environment variable SIGNAL.
- The exit code is 1, with "No kafka server to stop", when there is none.

`--data DIR` and `--dry-run` are ours: only the node with this data directory; which nodes would be stopped.
"""

import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable

from ottla.cli.help_format import CommandParser
from ottla.cli.node_processes import NodeProcess, node_processes

_NONE = "No kafka server to stop"


def main(
    arguments: list[str] | None = None,
    *,
    processes: Callable[[], Iterable[NodeProcess]] = node_processes,
    kill: Callable[[int, int], None] = os.kill,
) -> int:
    options = argument_parser().parse_args(arguments)
    number = _signal(os.environ.get("SIGNAL", "TERM"))
    if number is None:
        print(f"kafka-server-stop: there is no signal {os.environ['SIGNAL']}", file=sys.stderr)
        return 1
    wanted = None if options.data is None else os.path.realpath(options.data)
    found = [
        node
        for node in processes()
        if _is_meant(node, options.process_role, options.node_id) and (wanted is None or wanted in node.data)
    ]
    if not found:
        print(_NONE)
        return 1
    for node in found:
        if options.dry_run:
            print(f"process {node.pid}: node {node.node_id}, {','.join(node.roles)}: {' '.join(node.arguments)}")
        else:
            try:
                kill(node.pid, number)
            except ProcessLookupError:
                continue  # it has ended by itself
    return 0


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="kafka-server-stop",
        description="Asks the nodes of this user on this machine to stop.",
    )
    parser.add_argument("--process-role", choices=("broker", "controller"), help="only nodes that have this role")
    parser.add_argument("--node-id", type=int, metavar="ID", help="only the node with this id; the role does not count")
    parser.add_argument("--data", metavar="DIR", help="only the node whose data (log.dirs) are in this directory")
    parser.add_argument("--dry-run", action="store_true", help="say which nodes would be stopped, and stop none")
    return parser


def _is_meant(node: NodeProcess, role: str | None, node_id: int | None) -> bool:
    if node_id is not None:
        return node.node_id == node_id
    return role is None or role in node.roles


def _signal(name: str) -> int | None:
    if name.isdecimal():
        return int(name) if int(name) in set(signal.Signals) else None
    found = getattr(signal, f"SIG{name.upper().removeprefix('SIG')}", None)
    return int(found) if isinstance(found, signal.Signals) else None


if __name__ == "__main__":
    sys.exit(main())
