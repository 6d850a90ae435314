"""Clients of a tool, made from its options. They are imported when one is made, not at a tool's start.

What `--timeout` says holds for all clients of the process: a tool is one command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.cli.failures import Terse
from ottla.cli.options.reading import Given
from ottla.cli.warning_lines import print_warnings

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.settings import ClientSettings


_timeout_ms: int | None = None


def limit_time(timeout_s: float | None) -> None:
    """How long clients that are opened from now on try to reach the cluster and have a request answered."""
    global _timeout_ms
    _timeout_ms = None if timeout_s is None else max(round(timeout_s * 1000), 1)


def _limits() -> dict[str, object]:
    return {} if _timeout_ms is None else {"default_api_timeout_ms": _timeout_ms, "request_timeout_ms": _timeout_ms}


def _tell_troubles(timeout_s: float | None) -> None:
    from ottla.cli.notices import tell_troubles

    tell_troubles(timeout_s)


def open_admin(
    servers: str | None, *, controllers: str | None = None, config_file: str | None = None, is_quiet: bool = False
) -> Admin:
    """An admin of the cluster. The addresses go before those in the file. A quiet one tells of no troubles.

    Raises `ConfigError` for settings, and `OSError` for a file that cannot be read.
    """
    print_warnings("WARNING")
    from ottla.client.blocking.admin import Admin

    _check_addresses(controllers or servers or "")
    given: Any = {"bootstrap_servers": servers, "bootstrap_controllers": controllers, **_limits()}
    admin = Admin(**given) if config_file is None else Admin.from_properties(config_file, **given)
    if not is_quiet:
        _tell_troubles(admin._cluster.settings.integer("default.api.timeout.ms") / 1000)
    return admin


def admin_settings(servers: str | None, *, config_file: str | None = None) -> ClientSettings:
    """The same settings, for a tool that is closer to the brokers than an admin."""
    print_warnings("WARNING")
    from ottla.client.settings import read_settings, read_settings_file
    from ottla.config.scopes import Scope

    _check_addresses(servers or "")
    given = {"bootstrap_servers": servers, **_limits()}
    if config_file is None:
        settings = read_settings(Scope.ADMIN, None, given)
    else:
        with open(config_file, "rb") as file:
            settings = read_settings_file(Scope.ADMIN, file.read(), given)
    _tell_troubles(settings.integer("default.api.timeout.ms") / 1000)
    return settings


def admin_of(given: Given, timeout_s: float | None = None) -> Admin:
    """By the options that most tools have. `timeout_s` is what the tool limits each call to, if it does."""
    admin = open_admin(given.get("bootstrap-server"), config_file=given.get("command-config"))
    if timeout_s is not None:
        _tell_troubles(timeout_s)
    return admin


def open_producer(settings: Mapping[str, object]) -> Producer:
    """Raises `ConfigError` for settings that are none."""
    print_warnings("WARNING")
    from ottla.client.blocking.producer import Producer

    _check_addresses(str(settings.get("bootstrap.servers") or ""))
    producer = Producer(settings)
    _tell_troubles(None)
    return producer


def open_consumer(settings: Mapping[str, object]) -> Consumer:
    """Raises `ConfigError` for settings that are none."""
    print_warnings("WARNING")
    from ottla.client.blocking.consumer import Consumer

    _check_addresses(str(settings.get("bootstrap.servers") or ""))
    consumer = Consumer(settings)
    _tell_troubles(None)
    return consumer


def _check_addresses(text: str) -> None:
    """A name that cannot be resolved is reported at once: a client would try for as long as its settings say."""
    import socket

    hosts = [address.rpartition(":")[0].rpartition("://")[2].strip("[] ") for address in text.split(",")]
    for host in hosts:
        try:
            socket.getaddrinfo(host, None)
            return
        except (OSError, UnicodeError):
            continue
    raise Terse(f"No resolvable bootstrap urls given in bootstrap.servers: {text}")
