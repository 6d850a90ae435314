"""`ottla doctor`: configuration, directories, files, memory, clock and ports of a node, before or while it runs.

It looks at the node that `ottla start` with the same options would start. Nothing is changed. The exit code is 0 if a
node can start, 1 if something stops it (with `--strict` also if there is a warning), 2 for a wrong command line.
"""

import sys
from argparse import ArgumentParser

from ottla.cli.colours import BOLD, DIM, GREEN, RED, YELLOW, Palette, palette_for
from ottla.cli.doctor.findings import LEVELS, NOTE, OK, PROBLEM, WARNING, Finding
from ottla.cli.help_format import help_formatter
from ottla.cli.start import DEFAULT_DATA, node_properties, port

_COLOURS = {OK: GREEN, NOTE: BOLD, WARNING: YELLOW, PROBLEM: RED}
_MARKS = {OK: "✓", NOTE: "i", WARNING: "!", PROBLEM: "✗"}


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    try:
        properties = node_properties(options, options.data)
    except (OSError, ValueError) as problem:
        findings = [Finding("settings", PROBLEM, str(problem), "Correct it, and run this again.")]
    else:
        findings = examine(properties, may_format=options.config is None)
    if options.json:
        _print_json(findings)
    else:
        _print(findings, palette_for(sys.stdout))
    bad = (WARNING, PROBLEM) if options.strict else (PROBLEM,)
    return 1 if any(finding.level in bad for finding in findings) else 0


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla doctor",
        description="Looks at what a node would start with, and says what it finds and what to do. Changes nothing.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", default=DEFAULT_DATA, metavar="DIR", help="data directory (default: ./%(default)s)")
    where.add_argument("--config", metavar="FILE", help="Kafka's server.properties")
    parser.add_argument("--port", type=port, help="the port that the node would be given")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--strict", action="store_true", help="a warning makes the exit code 1 too")
    return parser


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


def _print(findings: list[Finding], paint: Palette) -> None:
    width = max(len(finding.area) for finding in findings)
    for finding in findings:
        mark = _MARKS[finding.level] if paint.is_on else f"{finding.level:7}"
        print(f"{paint(mark, _COLOURS[finding.level])} {finding.area:{width}}  {finding.what}")
        if finding.advice:
            margin = " " * (width + (4 if paint.is_on else 10))
            print(paint(f"{margin}{finding.advice}", DIM))
    print(paint(_summary(findings), BOLD))


def _summary(findings: list[Finding]) -> str:
    counts = {level: sum(finding.level == level for finding in findings) for level in (PROBLEM, WARNING)}
    told = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts.items() if count]
    return ", ".join(told) if told else "nothing stands in a node's way"


def _print_json(findings: list[Finding]) -> None:
    import json

    counts = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
    print(json.dumps({"counts": counts, "findings": [finding._asdict() for finding in findings]}, indent=2))
