"""`ottla demo`: a live auction house and a Spark pipeline that is killed half-way; `ottla demo node`: a node alone.

`ottla demo` starts a node, sends it a live stream of auctions and bids, and runs a Spark pipeline from topic to topic,
exactly once. The pipeline is killed in the middle and started again. In the end its results must be those of a direct
computation. It takes about two minutes on two cores, and needs `pip install ottla[spark]`.

    --events N      how many events (default 200,000)
    --rate N        how many a second (default 4,000)
    --keep          leave node and pipeline running when it is done, until Ctrl-C

`ottla demo node` needs nothing more than ottla: a million records through a node that is killed half-way.

    --records N     how many records (default 1,000,000)
"""

import sys
from typing import Final

NEEDED: Final = ("pyspark", "pandas", "pyarrow", "google.protobuf")
BAD_USAGE: Final = 2
INTERRUPTED: Final = 130
"""What a shell says of a command that Ctrl-C has ended."""


def main(arguments: list[str]) -> int:
    match arguments:
        case ["node", *rest]:
            from ottla.cli import node_demo

            return node_demo.main(rest)
        case ["-h" | "--help"]:
            print(__doc__)
            return 0
    wanted: dict[str, int] = {"--events": 0, "--rate": 0}
    rest, keeps = list(arguments), False
    while rest:
        match rest:
            case ["--keep", *rest]:
                keeps = True
            case ["--events" | "--rate" as name, number, *rest] if number.isdecimal() and int(number):
                wanted[name] = int(number)
            case _:
                print(
                    f"ottla demo: what is {' '.join(arguments)}? Known are --events N, --rate N, --keep, and "
                    "`ottla demo node`",
                    file=sys.stderr,
                )
                return BAD_USAGE
    if missing := [name for name in NEEDED if not is_installed(name)]:
        print(
            f"ottla demo runs a Spark pipeline, and {', '.join(missing)} is not installed:\n"
            "    pip install 'ottla[spark,terminal]'\n"
            "`ottla demo node` shows the node alone, and needs nothing more.",
            file=sys.stderr,
        )
        return 1
    return run(wanted["--events"], wanted["--rate"], keeps)


def run(events: int, rate: int, keeps: bool) -> int:
    from ottla.cli.stopping import stop_on_terminate
    from ottla.spark.demo.demo import DemoFailed
    from ottla.spark.demo.demo import run as run_demo
    from ottla.spark.demo.settings import DemoSettings

    default = DemoSettings()
    # Whole groups of one person, three auctions and 46 bids.
    settings = default._replace(
        events=-(-(events or default.events) // 50) * 50, rate=float(rate or default.rate), keep=keeps
    )
    try:
        with stop_on_terminate():
            return run_demo(settings)
    except DemoFailed as failure:
        print(f"ottla demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ottla demo: interrupted; node and pipeline are gone, and their files", file=sys.stderr)
        return INTERRUPTED


def is_installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is in
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
