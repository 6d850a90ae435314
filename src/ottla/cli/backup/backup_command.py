"""`ottla backup DIR`: topics with their settings and records, groups, rules, quotas and users, into a directory.

The first run saves everything, the ones after it what came since. A run that was stopped continues where it was.
"""

import re
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ottla.cli.help_format import help_formatter
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, complain
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.cli.backup.runs import BackupDirectory

_INTERRUPTED = 130


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla backup",
        description="Saves topics with their settings and records, the offsets of groups, access rules, quotas and "
        "users into a directory: all at first, and what came since with every further run. A run that was stopped "
        "goes on where it was.",
        epilog="Passwords cannot be saved: brokers do not give them out. Exit code: 0 all is saved, 1 something is "
        "not, or is damaged, and was named.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("directory", metavar="DIR", help="where the back-up is, or is to be")
    add_connection(parser)
    parser.add_argument("--topic", metavar="PATTERN", help="only topics whose whole name matches (default: all)")
    parser.add_argument("--exclude", metavar="PATTERN", help="no topics whose whole name matches")
    parser.add_argument(
        "--raw",
        action="store_true",
        help="all batches, with those of aborted and open transactions and markers (default: what is committed)",
    )
    parser.add_argument(
        "--compression", choices=("zstd", "none"), default="zstd", help="compression of the files (default: zstd)"
    )
    parser.add_argument("--full", action="store_true", help="save everything again, and not only what came since")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--repair", action="store_true", help="read again what is damaged in DIR, if the cluster has it")
    what.add_argument("--verify", action="store_true", help="only look at every block in DIR; no cluster is needed")
    what.add_argument("--list", action="store_true", help="only list the runs in DIR; no cluster is needed")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    is_chosen = chosen_by(parser, options)
    try:
        if options.list:
            return _list(options)
        if options.verify:
            return _verify(options)
        return _save(options, is_chosen)
    except KeyboardInterrupt:
        print("ottla backup: stopped; the next run continues from here", file=sys.stderr)
        return _INTERRUPTED
    except FAILURES as problem:
        return complain("ottla backup", problem)


def chosen_by(parser: ArgumentParser, options: Namespace) -> "Callable[[str], bool]":
    """Which topics `--topic` and `--exclude` mean."""
    patterns = []
    for name in ("topic", "exclude"):
        given = getattr(options, name)
        try:
            patterns.append(None if given is None else re.compile(given))
        except re.error as problem:
            parser.error(f"--{name} {given}: {problem}")
    wanted, excluded = patterns

    def is_chosen(topic: str) -> bool:
        if wanted is not None and not wanted.fullmatch(topic):
            return False
        return excluded is None or not excluded.fullmatch(topic)

    return is_chosen


def _save(options: Namespace, is_chosen: "Callable[[str], bool]") -> int:
    import os

    from ottla.base.processors import processor_count
    from ottla.cli.backup.saving import RAW, READ_COMMITTED, Saving, Wish
    from ottla.cli.bars import ProgressBar
    from ottla.cli.stopping import stop_on_terminate
    from ottla.cli.text_tables import counted, size
    from ottla.log.disk import OsDisk

    bar = ProgressBar("saved", is_quiet=options.quiet)
    wish = Wish(
        is_chosen,
        RAW if options.raw else READ_COMMITTED,
        options.compression,
        options.full,
        options.repair,
        writers=min(max(round(processor_count()) - 1, 1), 4),
    )
    cluster = Cluster.of(options, Scope.CONSUMER, Scope.ADMIN)
    with stop_on_terminate():
        saved = Saving(cluster, OsDisk(), os.path.abspath(options.directory), wish, bar).run()
    run = saved.run
    partitions = sum(len(topic.partitions) for topic in run.topics)
    if run.cluster["users"]:
        bar.say(
            f"ottla backup: {counted(len(run.cluster['users']), 'credential')} of users saved without the password, "
            "which brokers tell nobody; `ottla restore --passwords FILE` sets it"
        )
    bar.end(
        f"run {run.number}: {counted(saved.records, 'record')} of {counted(partitions, 'partition')} in "
        f"{counted(len(run.topics), 'topic')}, "
        f"{size(saved.raw_bytes)} in {saved.took_s:.1f} s ({size(saved.raw_bytes / saved.took_s)}/s), "
        f"{size(saved.stored_bytes)} stored; {counted(len(run.cluster['groups']), 'group')}"
        + (f"; {counted(len(run.problems), 'problem')}" if run.problems else "")
    )
    return 1 if run.problems else 0


def _opened(options: Namespace) -> "BackupDirectory":
    import os

    from ottla.cli.backup.runs import BackupDirectory
    from ottla.log.disk import OsDisk

    return BackupDirectory.open(OsDisk(), os.path.abspath(options.directory))


def _list(options: Namespace) -> int:
    from datetime import datetime

    from ottla.cli.text_tables import counted, size

    runs = _opened(options).runs()
    for number in sorted({*runs.found, *runs.damaged}):
        if number in runs.damaged:
            print(f"{number:4}  {runs.damaged[number]}")
            continue
        run = runs.found[number]
        files = [file for topic in run.topics for one in topic.partitions for file in one.files]
        began = datetime.fromtimestamp(run.began_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
        partitions = sum(len(topic.partitions) for topic in run.topics)
        problems = f", {counted(len(run.problems), 'problem')}" if run.problems else ""
        print(
            f"{number:4}  {began}  {run.isolation}, {counted(len(run.topics), 'topic')}, "
            f"{counted(partitions, 'partition')}, {counted(len(run.cluster['groups']), 'group')}; "
            f"added {counted(sum(file.records for file in files), 'record')}, "
            f"{size(sum(file.stored_bytes for file in files))} stored{problems}"
        )
    if not runs.found and not runs.damaged:
        print("no run has finished")
    return 1 if runs.damaged else 0


def _verify(options: Namespace) -> int:
    """Every block that a run names, once."""
    from ottla.cli.backup.planning import damages
    from ottla.cli.bars import ProgressBar
    from ottla.cli.text_tables import counted, size

    directory = _opened(options)
    runs = directory.runs()
    bar = ProgressBar("verified", is_quiet=options.quiet)
    bad = 0
    for why in runs.damaged.values():
        print(why)
        bad += 1
    chains = directory.chains(runs.next_number - 1)
    bar.total = sum(link.file.raw_bytes for chain in chains.values() for link in chain.links)
    for key, chain in chains.items():
        for begin, end, what in damages(directory, chain):
            bar.clear()
            print(f"{key}: offsets {begin} to {end - 1}: {what}")
            bad += 1
        raw_bytes = sum(link.file.raw_bytes for link in chain.links)
        bar.done += raw_bytes
        bar.size_bytes += raw_bytes
        bar.show()
    verdict = f"{bad} damaged" if bad else "nothing is damaged"
    bar.clear()
    looked = f"{counted(len(runs.found), 'run')}, {counted(len(chains), 'partition')}, {size(bar.size_bytes)}"
    print(f"{looked}: {verdict}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
