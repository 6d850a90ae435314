"""From settings to limits on connections."""

import pytest

from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.node.limits.connection_limits import connection_limits, protected_listeners
from ottla.node.listeners import Listener
from ottla.runtime.admission import NO_LIMIT, ConnectionLimits
from ottla.testing.host_names import FixedHostNames

REQUIRED = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
CLIENTS = Listener("CLIENTS", "127.0.0.1", 9092, "PLAINTEXT")
BROKERS = Listener("BROKERS", "127.0.0.1", 9093, "PLAINTEXT")
CONTROLLER = Listener("CONTROLLER", "127.0.0.1", 9094, "PLAINTEXT", for_controllers=True)


def limits(**settings: str) -> ConnectionLimits:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return connection_limits(parse(Scope.BROKER, {**REQUIRED, **given}).values, [CLIENTS, BROKERS], FixedHostNames())


def test_by_default_there_are_none() -> None:
    assert limits() == ConnectionLimits(NO_LIMIT, {}, NO_LIMIT, {})


def test_in_all_for_a_listener_and_for_an_address() -> None:
    found = limits(
        max_connections="100",
        listener_name_brokers_max_connections="7",
        max_connections_per_ip="5",
        max_connections_per_ip_overrides="10.0.0.1:50, localhost:60,[::1]:70",
    )
    assert (found.max_connections, found.max_per_listener, found.max_per_ip) == (100, {"BROKERS": 7}, 5)
    assert found.max_of_ip["10.0.0.1"] == 50
    assert {found.max_of_ip.get("127.0.0.1"), found.max_of_ip.get("::1")} & {60, 70}


def test_an_override_that_cannot_be_read_is_named_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    assert limits(max_connections_per_ip_overrides="10.0.0.1:many,10.0.0.2:3").max_of_ip == {"10.0.0.2": 3}
    assert "'10.0.0.1:many' is ignored" in caplog.text


@pytest.mark.parametrize(
    ("listeners", "protected"),
    [
        ([BROKERS], set()),
        ([BROKERS, CONTROLLER], {"CONTROLLER"}),
        ([CLIENTS, BROKERS, CONTROLLER], {"BROKERS", "CONTROLLER"}),
    ],
)
def test_clients_cannot_fill_up_what_brokers_and_controllers_use(
    listeners: list[Listener], protected: set[str]
) -> None:
    assert protected_listeners(listeners, "BROKERS") == protected
