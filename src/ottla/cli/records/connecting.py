"""The options that name a cluster, and clients made from them. Clients are imported when one is made."""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Final

from ottla.base.errors import OttlaError
from ottla.cli.client_settings import settings_in_file
from ottla.cli.warning_lines import print_warnings
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer

SERVERS_VARIABLE: Final = "OTTLA_BOOTSTRAP_SERVERS"
FAILURES: Final = (OttlaError, OSError, TimeoutError)
"""What a command tells in a line. Anything else is a fault of ours, and shows where it happened."""


def add_connection(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=os.environ.get(SERVERS_VARIABLE, "localhost:9092"),
        help=f"some brokers of the cluster (default: ${SERVERS_VARIABLE}, or localhost:9092)",
    )
    parser.add_argument("--command-config", metavar="FILE", help="a properties file with settings of the client")
    parser.add_argument(
        "--set", action="append", default=[], type=setting, metavar="KEY=VALUE", help="a setting of the client"
    )


def setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ArgumentTypeError(f"{text!r}: it must be KEY=VALUE")
    return key.strip(), value.strip()


class Cluster:
    """A cluster as a command line names it."""

    def __init__(self, servers: str, config_file: str | None, settings: dict[str, str]) -> None:
        self.servers = servers
        self._config_file = config_file
        self._settings = settings
        print_warnings("warning")

    @classmethod
    def of(cls, options: Namespace) -> "Cluster":
        return cls(options.bootstrap_server, options.command_config, dict(options.set))

    def consumer(self, **settings: object) -> "Consumer":
        from ottla.client.blocking.consumer import Consumer

        # A mistyped name is to be told, not made a topic.
        return Consumer(self._with(Scope.CONSUMER, {"allow_auto_create_topics": False, **settings}))

    def producer(self, **settings: object) -> "Producer":
        from ottla.client.blocking.producer import Producer

        return Producer(self._with(Scope.PRODUCER, settings))

    def admin(self) -> "Admin":
        from ottla.client.blocking.admin import Admin

        return Admin({**settings_in_file(self._config_file, Scope.ADMIN), "bootstrap.servers": self.servers})

    def _with(self, scope: Scope, settings: dict[str, object]) -> dict[str, object]:
        """What the command needs, under what the person says."""
        wanted = {name.replace("_", "."): value for name, value in settings.items() if value is not None}
        in_file = settings_in_file(self._config_file, scope)
        return {**wanted, **in_file, "bootstrap.servers": self.servers, **self._settings}


def complain(program: str, problem: BaseException) -> int:
    """The exit status of a command that could not do its work."""
    match problem:
        case OSError(filename=str() as path, strerror=str() as reason):
            told = f"{path}: {reason}"
        case _:
            told = str(problem) or type(problem).__name__
    print(f"{program}: {told}", file=sys.stderr)
    return 1
