"""`make integrity`: everything that a producer can send, at once, on real nodes, read back by every reader.

Exit status 1 if a record is not what was sent, is missing, or was never sent.
"""

import faulthandler
import signal
import sys
import time
from argparse import ArgumentParser
from collections import Counter

from ottla.testing.workload.plans import LaneKind
from tests.integrity.integrity_run import run_program
from tests.integrity.targets import running


def main() -> int:
    parser = ArgumentParser(prog="make integrity", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long programs are begun (%(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="of the first program")
    parser.add_argument("--nodes", choices=("1", "3", "both"), default="both", help="on how many nodes (%(default)s)")
    parser.add_argument("--megabytes", type=int, default=24, help="the values of a program together (%(default)s)")
    parser.add_argument("--rounds", type=int, default=12, help="the most of a connection (%(default)s)")
    parser.add_argument(
        "--only",
        action="append",
        choices=[kind.name.lower() for kind in LaneKind],
        help="lanes of this kind alone; may be given again",
    )
    parser.add_argument(
        "--kills",
        choices=("some", "always", "never"),
        default="some",
        help="whether nodes are killed during the traffic: in the programs of every second pair of seeds (%(default)s)",
    )
    parser.add_argument("--keep-going", action="store_true", help="after a program that failed, too")
    given = parser.parse_args()
    faulthandler.register(signal.SIGUSR1)  # where it is, should it ever hang
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))  # and so ends the nodes
    counts: Counter[str] = Counter()
    failed: list[int] = []
    began_s = time.monotonic()
    seed = given.seed
    while time.monotonic() - began_s < given.seconds and (given.keep_going or not failed):
        nodes = (1 if seed % 2 else 3) if given.nodes == "both" else int(given.nodes)
        kills = given.kills == "always" or (given.kills == "some" and seed // 2 % 2 == 1)
        at_s = time.monotonic()
        with running(nodes) as target:
            outcome = run_program(
                seed,
                target,
                budget_bytes=given.megabytes << 20,
                most_rounds=given.rounds,
                only=[LaneKind[name.upper()] for name in given.only or ()],
                kills=kills,
            )
            errors = target.logs()
        counts += outcome.counts
        counts["programs"] += 1
        verdict = f"{len(outcome.differences)} differences" if outcome.differences else "good"
        took_s = time.monotonic() - at_s
        records = outcome.counts["records"]
        killed = f", {outcome.counts['kills during the traffic']} kills" if kills else ""
        print(f"seed {seed} on {nodes}: {records} records{killed}, {took_s:.1f} s, {verdict}", flush=True)
        if outcome.differences:
            failed.append(seed)
            for difference in outcome.differences[:12]:
                print(f"  {difference}")
            print("".join(f"  node: {line}\n" for line in errors.splitlines()[:5]), end="", flush=True)
        seed += 1
    for name, count in sorted(counts.items()):
        print(f"{count:>14,} {name}")
    took_s = time.monotonic() - began_s
    print(f"{took_s:.0f} s; " + (f"FAILED with seeds {failed}" if failed else "good"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
