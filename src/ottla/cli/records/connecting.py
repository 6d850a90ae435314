"""The options that name a cluster, and clients made from them. Clients are imported when one is made."""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.base.errors import OttlaError
from ottla.cli.client_settings import settings_in_file
from ottla.cli.options.table import SERVERS_VARIABLE
from ottla.cli.warning_lines import print_warnings
from ottla.config.scopes import Scope
from ottla.config.scopes import settings as settings_of

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer

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
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="how long to try to reach the cluster, and for answers, in seconds (default: 60)",
    )


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ArgumentTypeError(f"{text!r}: it must be a number of seconds")
    return number


def setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ArgumentTypeError(f"{text!r}: it must be KEY=VALUE")
    return key.strip(), value.strip()


def at_least(least: int) -> Callable[[str], int]:
    """A whole number, for argparse."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f"{text!r}: it must be a whole number from {least} on")
        return int(text)

    return number


_LIMITS: Final = {
    Scope.ADMIN: ("default.api.timeout.ms", "request.timeout.ms"),
    Scope.CONSUMER: ("default.api.timeout.ms", "request.timeout.ms"),
    Scope.PRODUCER: ("max.block.ms", "request.timeout.ms"),
}
"""What `--timeout` sets; first, what a client goes by until it has reached a broker."""


class Cluster:
    """A cluster as a command line names it. `clients` are those that the command makes of it.

    A setting that is given goes to those of them that have it. One that none of them has goes to each, and is refused.
    """

    def __init__(
        self,
        servers: str,
        config_file: str | None,
        settings: dict[str, str],
        clients: tuple[Scope, ...],
        timeout_s: float | None = None,
    ) -> None:
        self.servers = servers
        self._config_file = config_file
        self._settings = settings
        self._clients = clients
        self._timeout_s = timeout_s
        print_warnings("warning")

    @classmethod
    def of(cls, options: Namespace, *clients: Scope) -> "Cluster":
        return cls(options.bootstrap_server, options.command_config, dict(options.set), clients, options.timeout)

    def consumer(self, **settings: object) -> "Consumer":
        from ottla.client.blocking.consumer import Consumer

        # A mistyped name is to be reported, not made a topic.
        return Consumer(self._with(Scope.CONSUMER, {"allow_auto_create_topics": False, **settings}))

    def setting(self, name: str) -> object:
        """What was given for an admin, or nothing."""
        return self._with(Scope.ADMIN, {}).get(name)

    def consumer_settings(self, **settings: object) -> dict[str, object]:
        """For a consumer of another kind."""
        return self._with(Scope.CONSUMER, {"allow_auto_create_topics": False, **settings})

    def producer_settings(self, **settings: object) -> dict[str, object]:
        return self._with(Scope.PRODUCER, settings)

    def producer(self, **settings: object) -> "Producer":
        from ottla.client.blocking.producer import Producer

        return Producer(self._with(Scope.PRODUCER, settings))

    def admin(self) -> "Admin":
        from ottla.client.blocking.admin import Admin

        return Admin(self._with(Scope.ADMIN, {}))

    def _with(self, scope: Scope, settings: dict[str, object]) -> dict[str, object]:
        """What the command needs, under what the person says."""
        wanted = {name.replace("_", "."): value for name, value in settings.items() if value is not None}
        in_file = settings_in_file(self._config_file, scope)
        others = [settings_of(client) for client in self._clients if client is not scope]
        given = {
            name: value
            for name, value in self._settings.items()
            if name in settings_of(scope) or not any(name in other for other in others)
        }
        limits = {name: str(round(self._timeout_s * 1000)) for name in _LIMITS[scope]} if self._timeout_s else {}
        if limits and scope is Scope.PRODUCER:
            limits |= {"linger.ms": "0", "delivery.timeout.ms": limits["request.timeout.ms"]}
        settings = {**wanted, **in_file, "bootstrap.servers": self.servers, **limits, **given}
        self._tell_troubles(str(settings.get(_LIMITS[scope][0], "")))
        return settings

    def _tell_troubles(self, timeout_ms: str) -> None:
        from ottla.cli.notices import DEFAULT_TIMEOUT_S, tell_troubles

        tell_troubles(int(timeout_ms) / 1000 if timeout_ms.isdecimal() else DEFAULT_TIMEOUT_S)


def try_for_ever() -> None:
    """The command has reached the cluster, and waits for it from now on."""
    from ottla.cli.notices import try_for_ever

    try_for_ever()


def end_notices() -> None:
    """What was said about connections makes room for what the command has to say."""
    from ottla.cli.notices import end_notices

    end_notices()


def complain(program: str, problem: BaseException) -> int:
    """The exit status of a command that could not do its work. That the reader of its output has left is no failure."""
    end_notices()
    match problem:
        case BrokenPipeError():
            raise problem
        case OSError(filename=str() as path, strerror=str() as reason):
            line = f"{path}: {reason}"
        case _:
            line = str(problem) or type(problem).__name__
    print(f"{program}: {line}", file=sys.stderr)
    return 1
