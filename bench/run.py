"""Runs the benchmarks one after another, each in a process of its own, and sums up what failed.

python bench/run.py              all of them
python bench/run.py codec log    some of them
"""

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
NAMES = ["codec", "records", "schemas", "log", "access", "broker_for_tests"]


def main(wanted: list[str]) -> int:
    unknown = set(wanted) - set(NAMES)
    if unknown:
        print(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
        return 2
    failed = []
    for name in wanted or NAMES:
        print(f"\n== bench/{name}.py", flush=True)
        if subprocess.run([sys.executable, str(BENCH / f"{name}.py")], check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
