"""`ottla health`: nodes, quorum, partitions, disks, groups, transactions, certificates and features in one screen.

The exit code is 0 if all is well, 1 if there is a warning or a problem, or if the cluster cannot be reached.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from ottla.cli.doctor.findings import LEVELS, PROBLEM, WARNING, Finding
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, complain, seconds
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

_BAD: Final = (WARNING, PROBLEM)
_CLEAR: Final = "\x1b[H\x1b[2J"


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    try:
        with Cluster.of(options, Scope.ADMIN, Scope.CONSUMER).admin() as admin:
            while True:
                bad = _look(options, admin)
                if options.watch is None:
                    return 1 if bad else 0
                time.sleep(options.watch)
    except KeyboardInterrupt:
        return 0  # how it is left
    except FAILURES as problem:
        return complain("ottla health", problem)


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla health",
        description="Shows whether a cluster is well, in one screen and one exit code: 0 if it is, 1 if not.",
    )
    add_connection(parser)
    parser.add_argument(
        "--late",
        type=seconds,
        default=300.0,
        metavar="S",
        help="how far behind a group is late, in seconds (300)",
    )
    parser.add_argument(
        "--watch",
        type=seconds,
        nargs="?",
        const=5.0,
        metavar="S",
        help="look again every S seconds (5), until Ctrl-C",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object, one a line with --watch")
    return parser


def _look(options: Namespace, admin: "Admin") -> bool:
    """Whether something is not well."""
    from ottla.cli.health.cluster_checks import check_cluster

    cluster = Cluster.of(options, Scope.ADMIN, Scope.CONSUMER)
    findings = check_cluster(cluster, admin, options.late)
    if options.json:
        _print_json(findings, indent=2 if options.watch is None else None)
    else:
        from ottla.cli.doctor.doctor import print_findings

        if options.watch is not None and sys.stdout.isatty():
            print(_CLEAR, end="")
        print_findings(findings, "the cluster is well", with_advice=False)
    return any(finding.level in _BAD for finding in findings)


def _print_json(findings: list[Finding], indent: int | None) -> None:
    import json

    counts = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
    is_well = not any(counts[level] for level in _BAD)
    report = {"well": is_well, "counts": counts, "findings": [finding._asdict() for finding in findings]}
    print(json.dumps(report, indent=indent), flush=True)
