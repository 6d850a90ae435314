"""Clients of a tool, made from its options. They are imported when one is made, not at a tool's start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.cli.failures import Terse
from ottla.cli.options.reading import Given
from ottla.cli.warning_lines import print_warnings

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.settings import ClientSettings


def open_admin(servers: str | None, *, controllers: str | None = None, config_file: str | None = None) -> Admin:
    """An admin of the cluster. The addresses go before those in the file.

    Raises `ConfigError` for settings, and `OSError` for a file that cannot be read.
    """
    print_warnings("WARNING")
    from ottla.client.blocking.admin import Admin

    _check_addresses(controllers or servers or "")
    if config_file is not None:
        return Admin.from_properties(config_file, bootstrap_servers=servers, bootstrap_controllers=controllers)
    return Admin(bootstrap_servers=servers, bootstrap_controllers=controllers)


def admin_settings(servers: str | None, *, config_file: str | None = None) -> ClientSettings:
    """The same settings, for a tool that is closer to the brokers than an admin."""
    print_warnings("WARNING")
    from ottla.client.settings import read_settings, read_settings_file
    from ottla.config.scopes import Scope

    _check_addresses(servers or "")
    addresses: dict[str, object] = {"bootstrap_servers": servers}
    if config_file is None:
        return read_settings(Scope.ADMIN, None, addresses)
    with open(config_file, "rb") as file:
        return read_settings_file(Scope.ADMIN, file.read(), addresses)


def admin_of(given: Given) -> Admin:
    """By the options that most tools have."""
    return open_admin(given.get("bootstrap-server"), config_file=given.get("command-config"))


def open_producer(settings: Mapping[str, object]) -> Producer:
    """Raises `ConfigError` for settings that are none."""
    print_warnings("WARNING")
    from ottla.client.blocking.producer import Producer

    _check_addresses(str(settings.get("bootstrap.servers") or ""))
    return Producer(settings)


def open_consumer(settings: Mapping[str, object]) -> Consumer:
    """Raises `ConfigError` for settings that are none."""
    print_warnings("WARNING")
    from ottla.client.blocking.consumer import Consumer

    _check_addresses(str(settings.get("bootstrap.servers") or ""))
    return Consumer(settings)


def _check_addresses(text: str) -> None:
    """A name that cannot be resolved is told at once: a client would try for as long as its settings say."""
    import socket

    hosts = [address.rpartition(":")[0].rpartition("://")[2].strip("[] ") for address in text.split(",")]
    for host in hosts:
        try:
            socket.getaddrinfo(host, None)
            return
        except (OSError, UnicodeError):
            continue
    raise Terse(f"No resolvable bootstrap urls given in bootstrap.servers: {text}")
