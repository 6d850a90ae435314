"""`ottla balance`: proposes which replicas should be elsewhere and who should lead, and carries it out on request."""

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from ottla.cli.help_format import help_formatter
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.base.ids import TopicPartition
    from ottla.cli.balance.cluster_load import ClusterLoad
    from ottla.cli.balance.proposing import Move, Proposal
    from ottla.client.blocking.admin import Admin

_INTERRUPTED = 130
_GOALS = ("disk", "traffic", "leaders", "racks")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
DEFAULT_THROTTLE = 50 * 10**6
DEFAULT_AT_ONCE = 5


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla balance",
        description="Proposes which replicas should be on other brokers, and which replicas should lead, so that "
        "disks, traffic and leaders are spread evenly and partitions over racks. Nothing is changed without --execute.",
        epilog="--execute moves some partitions at a time, throttled, and stops when something falls out of sync. "
        "Ctrl-C cancels what is under way. What was before is in the file that is named, for --undo. Exit code: 0 done "
        "or proposed, 1 stopped or refused.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    add_connection(parser)
    parser.add_argument("--topic", metavar="PATTERN", help="only topics whose whole name matches (default: all)")
    parser.add_argument("--brokers", type=_ids, metavar="ID,…", help="only these brokers (default: all that are up)")
    parser.add_argument(
        "--goals",
        type=_goals,
        default=frozenset(_GOALS),
        metavar="GOAL,…",
        help=f"of {', '.join(_GOALS)} (default: all)",
    )
    parser.add_argument(
        "--tolerance", type=_percent, default=0.1, metavar="PERCENT", help="how uneven is even enough (default: 10)"
    )
    parser.add_argument(
        "--sample", type=float, default=5.0, metavar="SECONDS", help="how long traffic is watched (default: 5)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", metavar="FILE", help="carry this plan out, and propose none")
    what.add_argument("--undo", metavar="FILE", help="bring everything back to where it was before this plan")
    what.add_argument(
        "--stop", action="store_true", help="cancel all moves that are under way, and take throttles away"
    )
    parser.add_argument("--save", metavar="FILE", help="write the plan, with what is before (default with --execute)")
    parser.add_argument("--execute", action="store_true", help="carry out what is proposed")
    add_steps(parser)
    parser.add_argument("--json", action="store_true", help="print the proposal as one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


def add_steps(parser: ArgumentParser) -> None:
    """How a plan is carried out."""
    parser.add_argument(
        "--throttle",
        type=rate,
        default=DEFAULT_THROTTLE,
        metavar="RATE",
        help="bytes a second that moves may take of each broker, as 50M, or none (default: 50M)",
    )
    parser.add_argument(
        "--at-once", type=at_least(1), default=DEFAULT_AT_ONCE, metavar="N", help="partitions in a step (default: 5)"
    )


def rate(text: str) -> int | None:
    """Bytes a second; None without a limit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgKMG]?)[bB]?(?:/s)?", text.strip())
    if text.strip().lower() == "none":
        return None
    if found is None or float(found[1]) <= 0:
        raise ArgumentTypeError(f"{text!r}: it must be like 50M, 800k or none")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def _ids(text: str) -> frozenset[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise ArgumentTypeError(f"{text!r}: it must be broker ids, as 1,2,3")
    return frozenset(map(int, words))


def _goals(text: str) -> frozenset[str]:
    given = frozenset(word.strip() for word in text.split(","))
    if unknown := sorted(given - set(_GOALS)):
        raise ArgumentTypeError(f"{unknown[0]!r}: it must be of {', '.join(_GOALS)}")
    return given


def _percent(text: str) -> float:
    if not text.isdecimal() or not 0 < int(text) <= 100:
        raise ArgumentTypeError(f"{text!r}: it must be a whole number from 1 to 100")
    return int(text) / 100


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    try:
        options.pattern = re.compile(options.topic or ".*")
    except re.error as problem:
        parser.error(f"--topic {options.topic}: {problem}")
    from ottla.cli.stopping import stop_on_terminate

    try:
        with stop_on_terminate(), Cluster.of(options, Scope.ADMIN).admin() as admin:
            return _run(admin, options)
    except KeyboardInterrupt:
        print("ottla balance: stopped", file=sys.stderr)
        return _INTERRUPTED
    except FAILURES as problem:
        return complain("ottla balance", problem)


def _run(admin: "Admin", options: Namespace) -> int:
    from ottla.cli.text_tables import counted

    if options.stop:
        from ottla.cli.balance.carrying_out import stop_everything

        moves, topics = stop_everything(admin)
        print(f"{counted(moves, 'move')} cancelled; throttles of {counted(topics, 'topic')} and all brokers taken away")
        return 0
    if options.plan or options.undo:
        return _run_file(admin, options)
    from ottla.cli.balance.cluster_load import read_load
    from ottla.cli.balance.proposing import propose

    sample_s = options.sample if "traffic" in options.goals else 0.0
    if sample_s > 1 and sys.stderr.isatty():
        print(f"watching traffic for {sample_s:g} s (--sample)", file=sys.stderr)
    load = read_load(admin, lambda name: options.pattern.fullmatch(name) is not None, sample_s)
    refuse_unknown(options.brokers or (), load)
    places = [place for place in load.brokers.values() if not options.brokers or place.id in options.brokers]
    emptied = {broker for one in load.partitions for broker in one.replicas} - {place.id for place in places}
    if emptied and not options.brokers:
        print(
            f"ottla balance: broker {min(emptied)} has replicas and is not up; they stay where they are. "
            f"`ottla node drain {min(emptied)}` gives them to others",
            file=sys.stderr,
        )
        emptied = set()
    proposal = propose(places, load.partitions, emptied=emptied, goals=options.goals, tolerance=options.tolerance)
    show(proposal, load, options)
    if not proposal.moves:
        return 0
    cluster_id = admin.describe_cluster().cluster_id
    path = save(proposal.moves, cluster_id, options, "ottla-balance")
    if not options.execute:
        print(f"Nothing was changed: --execute carries it out{f', or --plan {path} --execute' if path else ''}.")
        return 0
    return carry_out(admin, proposal.moves, path, options, "ottla balance")


def refuse_unknown(brokers: "Iterable[int]", load: "ClusterLoad") -> None:
    """Raises `Terse` with those that do not exist, or are not up."""
    from ottla.cli.failures import Terse

    for broker in sorted(brokers):
        if broker in load.brokers:
            continue
        known = ", ".join(map(str, sorted(load.brokers))) or "none"
        what = "is not up" if broker in load.fenced else "does not exist"
        raise Terse(f"broker {broker} {what}; brokers that are up: {known}")


def _run_file(admin: "Admin", options: Namespace) -> int:
    from ottla.cli.balance.carrying_out import check_plan
    from ottla.cli.balance.plan_files import can_undo, read_plan

    cluster_id = admin.describe_cluster().cluster_id
    path = options.plan or options.undo
    wanted = read_plan(path, cluster_id, is_undone=bool(options.undo))
    moves = moves_to(admin, wanted, check_plan(admin, wanted))
    from ottla.cli.text_tables import counted, size

    if not moves:
        print("Everything is where the plan wants it.")
        return 0
    print(f"{counted(len(moves), 'partition')} to change, {size(sum(move.copied_bytes for move in moves))} to copy")
    if not options.execute:
        print("Nothing was changed: --execute carries it out.")
        return 0
    if options.undo:
        return carry_out(admin, moves, path, options, "ottla balance", is_undone=True)
    if not can_undo(path, moves):  # It was made by hand, or things have moved since.
        path = save(moves, cluster_id, options, "ottla-balance")
    return carry_out(admin, moves, path, options, "ottla balance")


def moves_to(
    admin: "Admin", wanted: "Mapping[TopicPartition, tuple[int, ...]]", now: "Mapping[TopicPartition, tuple[int, ...]]"
) -> "list[Move]":
    """What is left to do of a plan."""
    from ottla.cli.balance.cluster_load import read_load
    from ottla.cli.balance.proposing import Move

    topics = {at.topic for at in wanted}
    sizes = {one.at: one.size_bytes for one in read_load(admin, lambda name: name in topics, 0.0).partitions}
    return [
        Move(at, now[at], after, sizes.get(at, 0) if set(after) != set(now[at]) else 0)
        for at, after in sorted(wanted.items())
        if now[at] != after
    ]


def save(moves: "list[Move]", cluster_id: str, options: Namespace, name: str) -> str | None:
    """Where the plan was written, if it was."""
    from time import strftime

    from ottla.cli.balance.plan_files import write_plan

    path = options.save or (f"{name}-{strftime('%Y%m%d-%H%M%S')}.json" if options.execute else None)
    if path is not None:
        write_plan(path, cluster_id, moves)
        print(f"plan written to {path}")
    return str(path) if path is not None else None


def carry_out(
    admin: "Admin",
    moves: "list[Move]",
    path: str | None,
    options: Namespace,
    program: str,
    *,
    is_undone: bool = False,
) -> int:
    """`path` is the file that says what was before; with `is_undone`, what was after."""
    from ottla.cli.balance.carrying_out import CarryingOut
    from ottla.cli.bars import ProgressBar
    from ottla.cli.text_tables import counted, duration, size

    bar = ProgressBar("moved", is_quiet=options.quiet)
    work = CarryingOut(admin, bar, throttle=options.throttle, at_once=options.at_once)
    is_done = False
    try:
        done = work.run(moves)
        is_done = True
    finally:
        if not is_done:
            bar.clear()
            if is_undone:
                again = "; the same command continues"
            else:
                again = f"; `ottla balance --undo {path} --execute` brings it back" if path else ""
            print(f"{program}: {work.done.moved} of {counted(len(moves), 'partition')} done{again}", file=sys.stderr)
    for problem in done.problems:
        bar.say(f"{program}: {problem}")
    bar.end(
        f"{counted(done.moved, 'partition')} changed, {size(done.copied_bytes)} copied, "
        f"{counted(done.elected, 'leader')} elected, in {duration(bar.took_s)}"
    )
    if is_undone:
        print(f"`ottla balance --plan {path} --execute` carries the plan out again")
    elif path:
        print(f"`ottla balance --undo {path} --execute` brings everything back")
    return 1 if done.problems else 0


def show(proposal: "Proposal", load: "ClusterLoad", options: Namespace) -> None:
    """What each broker has and would have, and what it takes. PREFERRED: of how many it is the preferred leader."""
    from ottla.cli.text_tables import counted, duration, size

    if options.json:
        _print_json(proposal, load)
        return
    rows = [["BROKER", "RACK", "REPLICAS", "PREFERRED", "DISK", "WRITTEN"]]
    for broker, before in proposal.before.items():
        after, place = proposal.after[broker], load.brokers.get(broker)
        rows.append(
            [
                str(broker),
                (place.rack or "-") if place else "down",
                _arrow(before.replicas, after.replicas, "{:,}".format),
                _arrow(before.leaders, after.leaders, "{:,}".format),
                _arrow(before.disk, after.disk, size),
                _arrow(before.traffic, after.traffic, lambda one: f"{size(one)}/s"),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for unmet in proposal.unmet:
        print(unmet)
    if not proposal.moves:
        print("All is even enough.")
        return
    copied = [move for move in proposal.moves if move.adding]
    time = ""
    if options.throttle and proposal.copied_bytes:
        time = f", about {duration(proposal.copied_bytes / options.throttle / max(len(proposal.after) / 2, 1))}"
    print(
        f"{counted(len(copied), 'partition')} to move ({size(proposal.copied_bytes)} to copy{time}), "
        f"{counted(len(proposal.moves) - len(copied), 'other')} to lead elsewhere"
    )


def _arrow(before: float, after: float, form: "object") -> str:
    assert callable(form)
    one, other = form(before), form(after)
    return str(one) if one == other else f"{one} -> {other}"


def _print_json(proposal: "Proposal", load: "ClusterLoad") -> None:
    import json
    from dataclasses import asdict

    print(
        json.dumps(
            {
                "brokers": {
                    broker: {
                        "rack": load.brokers[broker].rack if broker in load.brokers else None,
                        "before": asdict(before),
                        "after": asdict(proposal.after[broker]),
                    }
                    for broker, before in proposal.before.items()
                },
                "moves": [
                    {
                        "topic": move.at.topic,
                        "partition": move.at.partition,
                        "before": move.before,
                        "replicas": move.after,
                        "copied_bytes": move.copied_bytes,
                    }
                    for move in proposal.moves
                ],
                "unmet": proposal.unmet,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
