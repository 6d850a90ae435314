"""`ottla sim`: runs whole clusters in one thread, from seeds, under faults, and checks what they promise.

Exit status 1 if something was violated.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

_DAY_S = 86_400
_SHRINKING_RUNS = 60


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla sim",
        description="Runs a cluster of real nodes in a simulation: network, disks, clocks and programs, all "
        "from one seed. Faults happen; what the cluster promises is checked. The same seed gives the same run.",
        allow_abbrev=False,
    )
    parser.add_argument("--seed", type=int, help="the seed of the first run; another one every day if not given")
    parser.add_argument("--seeds", type=_positive, help="how many runs, with seeds in a row (1)")
    parser.add_argument(
        "--for", type=_positive, dest="for_s", metavar="SECONDS", help="as many runs as begin in that time"
    )
    parser.add_argument("--nodes", type=_positive, default=1, help="how many nodes (%(default)s)")
    parser.add_argument("--minutes", type=float, default=1.0, help="simulated minutes under faults (%(default)s)")
    parser.add_argument("--faults", type=_numbers, help="only these of the seed's faults, by number: 3,7 or none")
    parser.add_argument("--actors", type=_names, help="only these of the programs: writer-1,reader-1 or none")
    parser.add_argument("--profile", default="usual", help="what goes wrong (%(default)s); `list` lists the ways")
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
    if options.profile not in PROFILES:
        print(f"ottla sim: there is no profile {options.profile!r}; `--profile list` lists them", file=sys.stderr)
        return 2
    if options.canary == "list":
        for name, canary in CANARIES.items():
            where = f"{canary.nodes} nodes, profile {canary.profile}, seeds 1 to {canary.within_seeds}"
            print(f"{name:28} {canary.summary} ({where})")
        return 0
    if options.canary is not None and options.canary not in CANARIES:
        print(f"ottla sim: there is no canary {options.canary!r}; `--canary list` lists them", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        if options.canary is not None:
            stack.enter_context(CANARIES[options.canary].broken())
        return _run(options)


def _run(options: Namespace) -> int:
    from ottla.cli.sim.run_report import failure, faults_of, summary
    from ottla.testing.sim.run_plan import draw_plan
    from ottla.testing.sim.shrinking import shrink
    from ottla.testing.sim.simulated_run import SimulatedRun

    failed = runs = 0
    simulated_s = cpu_s = 0.0
    for seed in _seeds(options):
        duration_ms = round(options.minutes * 60_000)
        plan = draw_plan(seed, options.nodes, duration_ms, options.profile).only(options.faults, options.actors)
        print(f"seed {seed}: {options.nodes} nodes, {faults_of(plan)}", flush=True)
        outcome = SimulatedRun(plan).run()
        runs, simulated_s, cpu_s = runs + 1, simulated_s + outcome.simulated_s, cpu_s + outcome.cpu_s
        print(summary(outcome), flush=True)
        if not outcome.is_good:
            failed += 1
            shortest = outcome
            if not options.no_shrink:
                shortest = shrink(outcome, lambda plan: SimulatedRun(plan).run(), _SHRINKING_RUNS)
            for line in failure(outcome, shortest, options.canary):
                print(line, flush=True)
        elif options.verbose:
            for line in outcome.log:
                print(f"  {line}")
    if runs > 1:
        pace = simulated_s / max(cpu_s, 0.001)
        print(f"{runs} runs, {failed} failed; {simulated_s:.0f} simulated s, {pace:.0f} per CPU s")
    return 1 if failed else 0


def _seeds(options: Namespace) -> Iterator[int]:
    first = int(time.time()) // _DAY_S * 1000 if options.seed is None else options.seed
    if options.for_s is None:
        yield from range(first, first + (options.seeds or 1))
        return
    end_s = time.monotonic() + options.for_s
    for seed in count(first):
        if time.monotonic() > end_s or (options.seeds is not None and seed >= first + options.seeds):
            return
        yield seed


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in _names(text)]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of numbers") from None


def _names(text: str) -> list[str]:
    return [] if text == "none" else text.split(",")
