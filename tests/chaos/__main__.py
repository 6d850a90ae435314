"""`make chaos`: real processes, real faults, and the verdict over all that the programs saw.

Exit status 1 if there is an anomaly, if the cluster does not recover, or if hardly anything was written.
"""

import os
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ottla.base.lent import POISON_VARIABLE
from ottla.testing.chaos.operations import Operation, Outcome, read_operations
from ottla.testing.chaos.verdict import counts, judge, table
from tests.chaos.chaos_cluster import OURS, TARGETS, ChaosCluster
from tests.chaos.chaos_faults import inflict
from tests.chaos.chaos_load import Load
from tests.chaos.recorder import Recorder

_QUIET_S = 3.0
_LEAST_ACKNOWLEDGED = 100


def options() -> Namespace:
    parser = ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long there are faults (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) % 100_000, help="which faults; else another each time"
    )
    parser.add_argument("--target", choices=[*TARGETS], default=OURS)
    parser.add_argument("--canary", help="break the nodes on purpose: a name that `ottla sim --canary list` shows")
    parser.add_argument("--history", type=Path, default=Path("chaos.jsonl"), help="where it is kept (%(default)s)")
    parser.add_argument("--judge", type=Path, metavar="HISTORY", help="only judge a history that was kept")
    return parser.parse_args()


def main() -> int:
    given = options()
    os.environ[POISON_VARIABLE] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))  # and so ends the nodes
    if given.judge is not None:
        with given.judge.open(encoding="utf-8") as lines:
            return _tell_verdict(list(read_operations(lines)))
    broken = f", broken with {given.canary}" if given.canary else ""
    print(f"three nodes of {given.target}{broken}; seed {given.seed}, {given.seconds:.0f} s of faults", flush=True)
    recorder = Recorder(given.history)
    with ChaosCluster(given.target, given.canary) as cluster:
        recovers = _run(cluster, recorder, given.seed, given.seconds)
    recorder.close()
    print(f"the history is in {given.history}")
    return max(_tell_verdict(recorder.operations), 0 if recovers else 1)


def _run(cluster: ChaosCluster, recorder: Recorder, seed: int, for_s: float) -> bool:
    load = Load(cluster, recorder, seed)
    try:
        faults = inflict(cluster, seed, for_s, lambda line: print(line, flush=True), load.over)
        cluster.wait_until_whole()
        time.sleep(_QUIET_S)  # programs go on without faults for a while
    finally:
        load.over.set()
    failures = load.finish()
    told = ", ".join(f"{count} {name}" for name, count in load.problems().most_common()) or "none"
    print(f"{faults} faults; errors that programs were told: {told}")
    for failure in failures:
        print(f"FAILED: {failure}")
    return not failures


def _tell_verdict(operations: list[Operation]) -> int:
    print(counts(operations))
    verdict = judge(operations)
    for line in table(verdict):
        print(line)
    acknowledged = sum(one.outcome is Outcome.OK and bool(one.sends) for one in operations)
    if acknowledged < _LEAST_ACKNOWLEDGED:
        print(f"FAILED: {acknowledged} acknowledged operations show nothing")
        return 1
    print("good" if verdict.is_good else "FAILED")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
