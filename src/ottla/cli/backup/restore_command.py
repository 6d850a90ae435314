"""`ottla restore DIR`: what `ottla backup` has saved, into the same cluster or another, all of it or some."""

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from ottla.cli.backup.backup_command import chosen_by
from ottla.cli.help_format import help_formatter
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.cli.backup.runs import BackupDirectory, Run

_INTERRUPTED = 130
_PARTS = ("topics", "groups", "acls", "quotas", "users", "settings")


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla restore",
        description="Restores what `ottla backup` has saved in a directory: topics are made, their records sent and "
        "compared with the back-up one by one, and then groups are given their places. A restore that was stopped "
        "goes on where it was.",
        epilog="Offsets are the destination's own, without gaps; places of groups are translated. While it is "
        "restored, a topic deletes and compacts nothing. Exit code: 0 all is restored and the same, 1 something is "
        "not, and was named.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("directory", metavar="DIR", help="where the back-up is")
    add_connection(parser)
    parser.add_argument("--run", type=at_least(1), metavar="N", help="as of this run (default: the last)")
    parser.add_argument("--topic", metavar="PATTERN", help="only topics whose whole name matches (default: all)")
    parser.add_argument("--exclude", metavar="PATTERN", help="no topics whose whole name matches")
    parser.add_argument("--group", metavar="PATTERN", help="only groups whose whole name matches (default: all)")
    parser.add_argument(
        "--only",
        type=_parts,
        metavar="PART,…",
        help=f"of {', '.join(_PARTS)} (default: all; with --topic, topics and groups)",
    )
    parser.add_argument(
        "--rename", action="append", default=[], type=_renamed, metavar="OLD=NEW", help="another name for a topic"
    )
    parser.add_argument(
        "--replication-factor", type=at_least(1), metavar="N", help="replication factor of topics that are created"
    )
    parser.add_argument("--append", action="store_true", help="write to topics that have records already, behind them")
    parser.add_argument("--passwords", metavar="FILE", help="passwords of users, a line each: user=password")
    parser.add_argument("--skip-damaged", action="store_true", help="leave out what is damaged in DIR")
    parser.add_argument("--no-compare", action="store_true", help="do not read what was restored")
    parser.add_argument("--state", metavar="FILE", help="where the place is kept (default: in DIR)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


def _parts(text: str) -> frozenset[str]:
    given = frozenset(one.strip() for one in text.split(","))
    if unknown := sorted(given - set(_PARTS)):
        raise ArgumentTypeError(f"{unknown[0]!r}: it must be of {', '.join(_PARTS)}")
    return given


def _renamed(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise ArgumentTypeError(f"{text!r}: it must be OLD=NEW")
    return old, new


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    is_chosen = chosen_by(parser, options)
    try:
        group = None if options.group is None else re.compile(options.group)
    except re.error as problem:
        parser.error(f"--group {options.group}: {problem}")
    parts = options.only or (frozenset(("topics", "groups")) if options.topic else frozenset(_PARTS))

    from ottla.cli.backup.restoring import Restored, RestoreWish, Restoring
    from ottla.cli.bars import ProgressBar
    from ottla.cli.stopping import stop_on_terminate
    from ottla.cli.text_tables import counted, size

    bar = ProgressBar("restored", is_quiet=options.quiet)
    try:
        wish = RestoreWish(
            is_chosen,
            lambda name: group is None or group.fullmatch(name) is not None,
            parts,
            dict(options.rename),
            options.replication_factor,
            options.append,
            options.skip_damaged,
            not options.no_compare,
            _passwords(options.passwords),
        )
        directory, run = _opened(options)
        _check_names(run, options)
        cluster = Cluster.of(options, Scope.CONSUMER, Scope.PRODUCER, Scope.ADMIN)
        with stop_on_terminate():
            restored: Restored = Restoring(cluster, directory, run, options.state, wish, bar).run()
    except KeyboardInterrupt:
        bar.say("ottla restore: stopped; the same command continues from here")
        return _INTERRUPTED
    except FAILURES as problem:
        bar.clear()
        return complain("ottla restore", problem)
    others = "".join(f", {counted(count, what[:-1])}" for what, count in restored.others.items() if count)
    compared = f", {restored.compared:,} compared" if wish.compares else ""
    bar.end(
        f"run {run.number}: {counted(restored.topics, 'topic')} with {counted(restored.records, 'record')}{compared}, "
        f"{size(restored.size_bytes)} sent; {counted(restored.groups, 'group')}{others}"
        + (f"; {counted(len(restored.problems), 'problem')}" if restored.problems else "")
    )
    return 1 if restored.problems else 0


def _opened(options: Namespace) -> "tuple[BackupDirectory, Run]":
    import os

    from ottla.cli.backup.block_files import Damaged
    from ottla.cli.backup.runs import BackupDirectory, NotABackup
    from ottla.log.disk import OsDisk

    directory = BackupDirectory.open(OsDisk(), os.path.abspath(options.directory))
    runs = directory.runs()
    number = options.run or max((*runs.found, *runs.damaged), default=0)
    if number in runs.damaged:
        whole = f"; run {max(runs.found)} can be restored, with --run {max(runs.found)}" if runs.found else ""
        raise Damaged(f"{runs.damaged[number]}{whole}")
    if number not in runs.found:
        has = f"it has runs {min(runs.found)} to {max(runs.found)}" if runs.found else "no run has finished"
        raise NotABackup(f"{options.directory}: there is no run {number or ''}: {has}".replace(" :", ":"))
    return directory, runs.found[number]


def _check_names(run: "Run", options: Namespace) -> None:
    from ottla.cli.backup.restoring import CannotRestore

    names = {topic.name for topic in run.topics}
    for old, _ in options.rename:
        if old not in names:
            from difflib import get_close_matches

            nearest = get_close_matches(old, names, n=1)
            raise CannotRestore(
                f"--rename {old}: run {run.number} has no such topic"
                + (f"; did you mean {nearest[0]}?" if nearest else "")
            )
    if options.topic and not any(re.fullmatch(options.topic, name) for name in names):
        raise CannotRestore(f"--topic {options.topic}: no topic of run {run.number} matches it")


def _passwords(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    return {user: password for user, _, password in (line.partition("=") for line in lines)}


if __name__ == "__main__":
    sys.exit(main())
