"""The trace of a run in a process of its own: `python trace_of_a_run.py SEED NODES SECONDS fast|slow plain|tls`
prints it. With tls all listeners but one for clients are encrypted, whatever the seed has drawn.
"""

import sys

COMPILED = (
    "ottla.records._fast",
    "ottla.client.producer._fast_append",
    "ottla.broker.coordination._gathering",
    "ottla.broker.data._plain_produce",
    "ottla.broker.partitions._partition_end",
    "ottla.machines.group._commit_records",
    "ottla.wire._native",
)
"""Not `_plain_fetch`: it says the same, in other pieces, and the trace is of pieces."""
FIBERS = "greenlet"


def main(seed: int, nodes: int, seconds: int, kernel: str, protection: str) -> None:
    if kernel == "slow":
        # Importing them fails, as where there was no compiler, and no greenlet.
        sys.modules.update(dict.fromkeys((*COMPILED, FIBERS)))
    from ottla.testing.sim.cluster.encryption import Encryption
    from ottla.testing.sim.run_plan import draw_plan
    from ottla.testing.sim.simulated_run import SimulatedRun

    plan = draw_plan(seed, nodes, seconds * 1000)
    encryption = Encryption(True, True, True, 0.5, True) if protection == "tls" else Encryption()
    outcome = SimulatedRun(plan._replace(settings=plan.settings._replace(encryption=encryption))).run()
    print(outcome.trace_hash, outcome.steps, outcome.acknowledged, outcome.violations)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
