"""Of a run nothing stays when it is over: `ottla sim` makes hundreds in one process."""

import gc
import weakref

from ottla.testing.sim.hosts.stepped_thread import running
from ottla.testing.sim.run_plan import draw_plan
from ottla.testing.sim.simulated_run import SimulatedRun

SEEDS = (1, 13)
"""The second ends while jobs of its disk threads have paused."""


def test_the_cluster_of_a_run_is_collected_when_it_is_over() -> None:
    for seed in SEEDS:
        run = SimulatedRun(draw_plan(seed, 3, 2_000).only((), ("writer-1",)))
        cluster = weakref.ref(run.cluster)
        assert run.run().is_good
        del run
        gc.collect()
        assert cluster() is None, f"of seed {seed}"
    assert running() is None
