"""`ottla demo`: a live auction house and a Spark pipeline that is killed half-way; `ottla demo node`: a node alone.

`ottla demo` starts a node, sends it a live stream of auctions and bids, and runs a Spark pipeline from topic to topic,
exactly once. The pipeline is killed in the middle and started again. In the end its results must be those of a direct
computation. It takes about two minutes on two cores, and needs `pip install ottla[spark]`.

`--events N`, `--rate N` and `--keep` say how much, how fast, and whether it all runs on in the end.

`ottla demo node` needs nothing more than ottla: a million records through a node that is killed half-way.

    --records N     how many records (default 1,000,000)
"""

import sys
from argparse import ArgumentParser
from typing import Final

from ottla.base.installing import install_command
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import at_least

NEEDED: Final = ("pyspark", "pandas", "pyarrow", "google.protobuf")
INTERRUPTED: Final = 130
"""What a shell says of a command that Ctrl-C has ended."""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["node"]:
        from ottla.cli import node_demo

        return node_demo.main(arguments[1:])
    options = argument_parser().parse_args(arguments)
    if missing := [name for name in NEEDED if not is_installed(name)]:
        print(
            f"ottla demo runs a Spark pipeline, and {', '.join(missing)} is not installed:\n"
            f"    {install_command('spark,terminal')}\n"
            "`ottla demo node` shows the node alone, and needs nothing more.",
            file=sys.stderr,
        )
        return 1
    return run(options.events, options.rate, options.keep)


def argument_parser() -> ArgumentParser:
    parser = CommandParser(prog="ottla demo", description=__doc__.split("\n\n")[1], epilog=__doc__.split("\n\n")[3])
    parser.add_argument("what", nargs="?", choices=("node",), help="`ottla demo node`: a node alone, without Spark")
    parser.add_argument("--events", type=at_least(1), default=0, metavar="N", help="how many events (default: 200,000)")
    parser.add_argument("--rate", type=at_least(1), default=0, metavar="N", help="how many a second (default: 4,000)")
    parser.add_argument(
        "--keep", action="store_true", help="leave node and pipeline running when it is done, until Ctrl-C"
    )
    return parser


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
