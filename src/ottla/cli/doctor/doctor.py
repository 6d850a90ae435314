"""`ottla doctor`: configuration, directories, files, memory, clock and ports of a node, before or while it runs.

With `-b` it looks at a cluster that runs, as `ottla health` does, and says what to do. Otherwise it
looks at the node that `ottla start` with the same options would start. Nothing is changed. The exit code is 0 if a
node can start, 1 if something stops it (with `--strict` also if there is a warning), 2 for a wrong command line.
"""

import sys
from argparse import ArgumentParser, Namespace

from ottla.cli.colours import BOLD, DIM, GREEN, RED, YELLOW, palette_for
from ottla.cli.doctor.findings import LEVELS, NOTE, OK, PROBLEM, WARNING, Finding
from ottla.cli.help_format import CommandParser
from ottla.cli.start import DEFAULT_DATA, node_properties, port

_COLOURS = {OK: GREEN, NOTE: BOLD, WARNING: YELLOW, PROBLEM: RED}
_LATE_S = 300.0
ALL_WELL = "nothing stands in a node's way"
_MARKS = {OK: "✓", NOTE: "i", WARNING: "!", PROBLEM: "✗"}


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    if options.bootstrap_server is not None:
        return _examine_cluster(options)
    try:
        properties = node_properties(options, options.data)
    except (OSError, ValueError) as problem:
        findings = [Finding("settings", PROBLEM, str(problem), "Correct it, and run this again.")]
    else:
        findings = examine(properties, may_format=options.config is None)
    if options.json:
        _print_json(findings)
    else:
        print_findings(findings, ALL_WELL)
    return 1 if any(finding.level in _bad(options) for finding in findings) else 0


def _bad(options: Namespace) -> tuple[str, ...]:
    return (WARNING, PROBLEM) if options.strict else (PROBLEM,)


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla doctor",
        description="Looks at what a node would start with, and says what it finds and what to do. Changes nothing.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", default=DEFAULT_DATA, metavar="DIR", help="data directory (default: ./%(default)s)")
    where.add_argument("--config", metavar="FILE", help="Kafka's server.properties")
    where.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="look at a cluster that runs")
    parser.add_argument("--command-config", metavar="FILE", help="with -b: settings of the client, in a file")
    parser.add_argument("--port", type=port, help="the port that the node would be given")
    parser.add_argument("--host", metavar="ADDRESS", help="the interface that it would listen on")
    parser.add_argument("--advertise", metavar="HOST[:PORT]", help="the address that clients would connect to")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--strict", action="store_true", help="a warning makes the exit code 1 too")
    return parser


def _examine_cluster(options: Namespace) -> int:
    from ottla.cli.health.cluster_checks import check_cluster
    from ottla.cli.records.connecting import FAILURES, Cluster, complain, setting
    from ottla.config.scopes import Scope

    given = dict(map(setting, options.set))
    try:
        cluster = Cluster(options.bootstrap_server, options.command_config, given, (Scope.ADMIN, Scope.CONSUMER))
        with cluster.admin() as admin:
            findings = check_cluster(cluster, admin, _LATE_S)
    except FAILURES as problem:
        return complain("ottla doctor", problem)
    if options.json:
        _print_json(findings)
    else:
        print_findings(findings, "the cluster is well")
    return 1 if any(finding.level in _bad(options) for finding in findings) else 0


def examine(properties: dict[str, str], *, may_format: bool) -> list[Finding]:
    import time

    from ottla.cli.doctor.port_check import check_ports
    from ottla.cli.doctor.settings_check import check_settings
    from ottla.cli.doctor.storage_check import check_storage, is_in_use
    from ottla.cli.doctor.system_check import check_system

    now_s = time.time()
    config, findings = check_settings(properties)
    if config is not None:
        findings += check_storage(config, may_format=may_format, now_s=now_s)
        findings += check_ports(config, is_running=any(map(is_in_use, config.log_dirs)))
    return [*findings, *check_system(now_s)]


def print_findings(findings: list[Finding], all_well: str, *, with_advice: bool = True) -> None:
    """A line each, and what to do below it; last, how many are bad."""
    paint = palette_for(sys.stdout)
    width = max(len(finding.area) for finding in findings)
    for finding in findings:
        mark = _MARKS[finding.level] if paint.is_on else f"{finding.level:7}"
        print(f"{paint(mark, _COLOURS[finding.level])} {finding.area:{width}}  {finding.what}")
        if finding.advice and with_advice:
            margin = " " * (width + (4 if paint.is_on else 10))
            print(paint(f"{margin}{finding.advice}", DIM))
    print(paint(_summary(findings, all_well), BOLD), flush=True)


def _summary(findings: list[Finding], all_well: str) -> str:
    counts = {level: sum(finding.level == level for finding in findings) for level in (PROBLEM, WARNING)}
    parts = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts.items() if count]
    return ", ".join(parts) if parts else all_well


def _print_json(findings: list[Finding]) -> None:
    import json

    counts = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
    print(json.dumps({"counts": counts, "findings": [finding._asdict() for finding in findings]}, indent=2))
