"""`ottla top`: a live view of topics and groups. Plain tables where there is no terminal, JSON for scripts."""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ottla.base.installing import install_command
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, complain
from ottla.cli.records.record_filter import pattern
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.cli.top.rates import View


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    try:
        if options.json or options.once or not sys.stdout.isatty():
            _print_views(options)
        else:
            _show_views(options)
    except KeyboardInterrupt:
        return 0  # how it is left
    except FAILURES as problem:
        return complain("ottla top", problem)
    return 0


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla top",
        description="Shows topics and groups of a cluster, live: throughput, and how far groups are behind.",
    )
    add_connection(parser)
    parser.add_argument("--interval", type=_seconds, default=2.0, metavar="S", help="seconds between looks (2)")
    parser.add_argument("--topic", type=pattern, metavar="PATTERN", help="only topics with such a name")
    parser.add_argument("--group", type=pattern, metavar="PATTERN", help="only groups with such a name")
    parser.add_argument("--internal", action="store_true", help="internal topics, too")
    parser.add_argument("--once", action="store_true", help="print one view, after two looks, and end")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    return parser


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.05 <= seconds <= 3600:
        raise ArgumentTypeError(f"{text!r}: it must be a number of seconds from 0.05 to 3600")
    return seconds


def _print_views(options: Namespace) -> None:
    import json

    from ottla.cli.top.tables import plain

    for view in _views(options):
        print(json.dumps(view.as_json()) if options.json else plain(view), flush=True)
        if options.once:
            return
        if not options.json:
            print()


def _show_views(options: Namespace) -> None:
    try:
        from ottla.cli.top.screen import screen, waits_for_q
    except ImportError:
        print(f"ottla top: for a live view {install_command('terminal')}; here are plain tables", file=sys.stderr)
        return _print_views(options)
    with waits_for_q() as wait, screen(f"ottla top   {options.bootstrap_server}") as show:
        for view in _views(options, wait):
            show(view)
    return None


def _views(options: Namespace, wait: Callable[[float], None] = time.sleep) -> "Iterator[View]":
    """One after every interval, for as long as the caller wants them. The first look is only for comparison."""
    from ottla.cli.top.rates import view_of
    from ottla.cli.top.sampling import Wanted, take_sample
    from ottla.cli.top.unread_ages import UnreadAges

    wanted = Wanted(options.topic, options.group, options.internal)
    cluster = Cluster.of(options, Scope.ADMIN, Scope.CONSUMER)
    with ExitStack() as stack:
        admin = stack.enter_context(cluster.admin())
        reading = {"enable_auto_commit": False, "max_partition_fetch_bytes": 1, "client_id": "ottla-top"}
        ages = UnreadAges(stack.enter_context(cluster.consumer(**reading)))
        before = take_sample(admin, wanted)
        while True:
            wait(max(0.0, before.at_s + options.interval - time.monotonic()))
            now = take_sample(admin, wanted)
            yield view_of(before, now, ages.look(now), time.time_ns() // 1_000_000)
            before = now
