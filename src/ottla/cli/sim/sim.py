"""`ottla sim`: runs whole clusters in one thread, from seeds, under faults, and checks what they promise.

Exit status 1 if something was violated.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator
from itertools import count, takewhile
from math import inf
from typing import TYPE_CHECKING

from ottla.cli.help_format import CommandParser

if TYPE_CHECKING:
    from ottla.cli.sim.run_report import Totals
    from ottla.cli.sim.runs import Task

_ALL = "all"
_SHRINKING_RUNS = 60


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla sim",
        description="Runs a cluster of real nodes in a simulation: network, disks, clocks and programs, all "
        "from one seed. Faults happen; what the cluster promises is checked. The same seed gives the same run.",
    )
    parser.add_argument("--seed", type=int, help="the seed of the first run; a new one each time if not given")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--seeds", type=_positive, help="how many seeds in a row (1)")
    how_many.add_argument("--hours", type=_hours, help="as many seeds of each profile as make so many simulated hours")
    parser.add_argument(
        "--for", type=_positive, dest="for_s", metavar="SECONDS", help="as many runs as begin in that time"
    )
    parser.add_argument(
        "--jobs", type=_positive, default=1, help="how many runs at a time, each a process (%(default)s)"
    )
    parser.add_argument("--nodes", type=_positive, help="how many nodes (what the profile has)")
    parser.add_argument("--minutes", type=float, help="simulated minutes under faults (what the profile has)")
    parser.add_argument("--faults", type=_numbers, help="only these of the seed's faults, by number: 3,7 or none")
    parser.add_argument("--actors", type=_names, help="only these of the programs: writer-1,reader-1 or none")
    parser.add_argument("--profile", default="usual", help="what goes wrong (%(default)s): all, or one of the `list`")
    parser.add_argument("--canary", help="break the nodes on purpose, to see that it is found; `list` lists the ways")
    parser.add_argument("--no-shrink", action="store_true", help="do not look for a shorter run that fails too")
    parser.add_argument("--verbose", "-v", action="store_true", help="tell what happens when")
    return parser


def main(arguments: list[str]) -> int:
    options = argument_parser().parse_args(arguments)
    from ottla.testing.sim.canaries.canaries import CANARIES
    from ottla.testing.sim.run_profiles import PROFILES

    if options.profile == "list":
        for name, profile in PROFILES.items():
            print(f"{name:28} {profile.summary}")
        return 0
    if options.profile not in (*PROFILES, _ALL):
        print(f"ottla sim: there is no profile {options.profile!r}; `--profile list` lists them", file=sys.stderr)
        return 2
    if options.canary == "list":
        for name, canary in CANARIES.items():
            print(f"{name:28} {canary.summary} ({canary.plan().command()} --canary {name})")
        return 0
    if options.canary is not None and options.canary not in CANARIES:
        print(f"ottla sim: there is no canary {options.canary!r}; `--canary list` lists them", file=sys.stderr)
        return 2
    return _run(options)


def _run(options: Namespace) -> int:
    from ottla.cli.sim.run_report import Totals, failure, faults_of, summary
    from ottla.cli.sim.runs import side_by_side

    totals = Totals()
    for outcome, shortest in side_by_side(_tasks(options, totals), options.jobs):
        plan = outcome.plan
        print(f"seed {plan.seed}: {plan.settings.nodes} nodes, {plan.profile}: {faults_of(plan)}")
        print(summary(outcome), flush=True)
        totals.add(outcome)
        if not outcome.is_good:
            for line in failure(outcome, shortest, options.canary):
                print(line, flush=True)
        elif options.verbose:
            for line in (*outcome.log, f"reached: {'; '.join(sorted(outcome.marks))}"):
                print(f"  {line}")
    for line in totals.lines(options.canary):
        print(line)
    return 1 if totals.failed else 0


def _tasks(options: Namespace, totals: "Totals") -> Iterator["Task"]:
    from ottla.cli.sim.runs import Task
    from ottla.testing.sim.run_profiles import PROFILES

    profiles = list(PROFILES) if options.profile == _ALL else [options.profile]
    for seed, name in _seeds(options, profiles, totals):
        profile = PROFILES[name]
        yield Task(
            seed,
            options.nodes or profile.nodes,
            round((options.minutes or profile.minutes) * 60_000),
            name,
            options.faults,
            options.actors,
            options.canary,
            0 if options.no_shrink else _SHRINKING_RUNS,
        )


def _seeds(options: Namespace, profiles: list[str], totals: "Totals") -> Iterator[tuple[int, str]]:
    """Which seed with which profile, until it is enough."""
    first = int(time.time()) if options.seed is None else options.seed
    if options.hours is None:
        most = options.seeds or (None if options.for_s is not None else 1)
        drawn = _each_with_all(count(first) if most is None else range(first, first + most), profiles)
    else:
        drawn = _for_hours(options.hours, first, profiles, totals)
    end_s = inf if options.for_s is None else time.monotonic() + options.for_s
    yield from takewhile(lambda _: time.monotonic() <= end_s, drawn)


def _each_with_all(seeds: Iterable[int], profiles: list[str]) -> Iterator[tuple[int, str]]:
    return ((seed, profile) for seed in seeds for profile in profiles)


def _for_hours(hours: float, first: int, profiles: list[str], totals: "Totals") -> Iterator[tuple[int, str]]:
    """One profile after the other, from the same seed on, until its runs that are over make so many simulated hours."""
    for profile in profiles:
        for seed in count(first):
            if totals.simulated_s(profile) >= hours * 3600:
                break
            yield seed, profile


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours < inf:
        raise ArgumentTypeError(f"{text!r} is not a number of hours")
    return hours


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in _names(text)]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of numbers") from None


def _names(text: str) -> list[str]:
    return [] if text == "none" else text.split(",")
