"""`ottla connect`: start a worker, and use one, ours or Kafka Connect's."""

import argparse
import sys
from importlib import import_module

from ottla.base.errors import OttlaError
from ottla.cli.connect.rest_client import URL_VARIABLE, default_url
from ottla.cli.help_format import help_formatter
from ottla.cli.start import add_log_options


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    module, function = options.action.split(":")
    try:
        result: int = getattr(import_module(f"ottla.cli.connect.{module}"), function)(options)
        return result
    except (OttlaError, OSError, ValueError, TimeoutError) as problem:
        print(f"ottla connect: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla connect",
        description="Connectors: start a worker, or use one that runs, ours or Kafka Connect's.",
        formatter_class=help_formatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, action: str, summary: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary, formatter_class=help_formatter)
        command.set_defaults(action=action)
        return command

    start = add("start", "starting:start", "start a worker of a group, and run it until Ctrl-C")
    start.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="brokers of the cluster")
    start.add_argument("--port", metavar="PORT", help="port of the REST interface (default: 8083; 0 picks a free one)")
    start.add_argument("--host", metavar="HOST", help="its address (default: 127.0.0.1)")
    _add_worker(start)
    add_log_options(start, "info")

    run = add("run", "starting:run", "run connectors from files in a worker that stands alone")
    run.add_argument("file", nargs="+", help="connectors: .properties, .json or .yaml")
    run.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="brokers of the cluster")
    run.add_argument("--once", action="store_true", help="end when all that there is has been moved; for cron and CI")
    run.add_argument(
        "--idle",
        type=float,
        default=30.0,
        metavar="S",
        help="with --once: after how long without progress a source that cannot say is at its end (%(default)s)",
    )
    _add_worker(run)
    add_log_options(run, "warning")

    apply = add("apply", "applying:apply", "show how a directory of connectors differs from a worker's, and make it so")
    apply.add_argument("directory", metavar="DIR", help="connectors: .properties, .json or .yaml")
    apply.add_argument("--delete", action="store_true", help="delete connectors that the directory does not have")
    apply.add_argument("--dry-run", action="store_true", help="only show the difference")
    apply.add_argument("-y", "--yes", action="store_true", help="do not ask")
    _add_connection(apply)

    validate = add(
        "validate", "validating:validate_files", "hold connectors in files against their settings, without a worker"
    )
    validate.add_argument("file", nargs="+", help="connectors: .properties, .json or .yaml")
    validate.add_argument("--offline", action="store_true", help="do not look at databases and the like")
    _add_worker(validate)

    status = add("status", "status:status", "show what the connectors of a worker do")
    status.add_argument("name", nargs="*", help="connectors (default: all)")
    status.add_argument("-w", "--watch", action="store_true", help="again and again, until Ctrl-C")
    status.add_argument("--interval", type=float, default=2.0, metavar="S", help="how often (default: %(default)s)")
    status.add_argument("--json", action="store_true", help="print JSON")
    _add_connection(status)
    return parser


def _add_worker(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", metavar="FILE", help="the worker's properties, under Kafka's names")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any of them; may be repeated")


def _add_connection(command: argparse.ArgumentParser) -> None:
    url = default_url()
    command.add_argument("-u", "--url", default=url, help=f"the worker (default: {URL_VARIABLE}, or {url})")
    command.add_argument("--basic-auth", metavar="USER:PASSWORD", help="a login")
    command.add_argument("--token", metavar="TOKEN", help="a bearer token")
    command.add_argument("--ca", metavar="FILE", help="certificates to trust, in PEM")
