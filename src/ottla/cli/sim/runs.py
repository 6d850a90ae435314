"""Runs of `ottla sim`, several at a time: each in a process of its own, so that each has a core."""

from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from multiprocessing import get_context
from typing import NamedTuple

from ottla.testing.sim.canaries.canaries import CANARIES
from ottla.testing.sim.run_plan import RunPlan, draw_plan
from ottla.testing.sim.shrinking import shrink
from ottla.testing.sim.simulated_run import Outcome, SimulatedRun

_RUNS_OF_A_PROCESS = 8
"""Then another takes its place. A client that is killed has deliveries under way, which the garbage collector does not
follow (`_fast_append.Delivery`): they keep all that their run has made, 10 to 50 MB."""


class Task(NamedTuple):
    """One run. If it fails, a shorter one that fails too is looked for in at most so many runs."""

    seed: int
    nodes: int
    duration_ms: int
    profile: str
    faults: Collection[int] | None = None
    actors: Collection[str] | None = None
    canary: str | None = None
    shrinking_runs: int = 0


def play(task: Task) -> tuple[Outcome, Outcome]:
    """What came of it; and of the shortest run that fails as it does."""
    with ExitStack() as stack:
        if task.canary is not None:
            stack.enter_context(CANARIES[task.canary].broken())
        plan = draw_plan(task.seed, task.nodes, task.duration_ms, task.profile).only(task.faults, task.actors)
        outcome = _run(plan)
        if outcome.is_good or not task.shrinking_runs:
            return outcome, outcome
        return outcome, shrink(outcome, _run, task.shrinking_runs)


def side_by_side(tasks: Iterator[Task], processes: int) -> Iterator[tuple[Outcome, Outcome]]:
    """What comes of the tasks, in the order in which they are over. A task is drawn when a process is free for it."""
    if processes == 1:
        yield from map(play, tasks)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), max_tasks_per_child=_RUNS_OF_A_PROCESS) as pool:
        running: set[Future[tuple[Outcome, Outcome]]] = {pool.submit(play, one) for one in islice(tasks, processes)}
        while running:
            over, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(play, one) for one in islice(tasks, len(over))}
            for future in over:
                yield future.result()


def _run(plan: RunPlan) -> Outcome:
    return SimulatedRun(plan).run()
