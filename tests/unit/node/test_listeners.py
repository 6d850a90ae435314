"""Where a node listens, and where it says that it does."""

import pytest

from ottla.config.parse import ConfigError, Values, parse
from ottla.config.scopes import Scope
from ottla.node.listeners import Endpoint, Listener, advertised, parse_listeners
from ottla.testing.host_names import FixedHostNames

REQUIRED = {"process_roles": "broker", "node_id": "1", "controller_listener_names": "CONTROLLER"}


def values(listeners: str, **settings: str) -> Values:
    given = {key.replace("_", "."): value for key, value in {**REQUIRED, **settings}.items()}
    return parse(Scope.BROKER, {"listeners": listeners, **given}).values


def told(listeners: str, port: int = 9092, **settings: str) -> Endpoint:
    """What clients of the first listener are told, which got this port."""
    settled = values(listeners, **settings)
    first = parse_listeners(settled)[0]
    return advertised(settled, [(first, ("127.0.0.1", port))], FixedHostNames(own_name="this.machine"))[0]


@pytest.mark.parametrize(
    ("text", "host", "bound", "port"),
    [
        ("PLAINTEXT://localhost:9092", "localhost", "localhost", 9092),
        ("plaintext://127.0.0.1:0", "127.0.0.1", "127.0.0.1", 0),
        ("PLAINTEXT://:9092", "", "0.0.0.0", 9092),
        ("PLAINTEXT://[::1]:9092", "::1", "::1", 9092),
        ("PLAINTEXT://[::]:9092", "::", "::", 9092),
    ],
)
def test_a_listener_has_a_name_a_host_and_a_port(text, host, bound, port):
    (listener,) = parse_listeners(values(text))
    assert listener == Listener("PLAINTEXT", host, port, "PLAINTEXT")
    assert listener.bind_host == bound
    assert str(listener) == text.replace("plaintext", "PLAINTEXT")


def test_protocols_are_mapped_by_name():
    mapped = values("FRONT://:1,BACK://:2", listener_security_protocol_map="FRONT:PLAINTEXT, back:PLAINTEXT")
    assert [(listener.name, listener.protocol) for listener in parse_listeners(mapped)] == [
        ("FRONT", "PLAINTEXT"),
        ("BACK", "PLAINTEXT"),
    ]


def test_controllers_need_no_protocol():
    settled = values("PLAINTEXT://:1,CONTROLLER://:2", controller_listener_names="CONTROLLER")
    assert [(one.name, one.for_controllers) for one in parse_listeners(settled)] == [
        ("PLAINTEXT", False),
        ("CONTROLLER", True),
    ]


def test_the_two_families_of_addresses_may_share_a_port():
    both = values(
        "PLAINTEXT://127.0.0.1:9092,SIX://[::1]:9092",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT",
    )
    assert [listener.port for listener in parse_listeners(both)] == [9092, 9092]


@pytest.mark.parametrize(
    ("listeners", "settings", "key", "bound"),
    [
        ("localhost:9092", {}, "listeners", "NAME://HOST:PORT"),
        ("PLAINTEXT://localhost", {}, "listeners", "NAME://HOST:PORT"),
        ("PLAINTEXT://localhost:http", {}, "listeners", "NAME://HOST:PORT"),
        ("PLAINTEXT://localhost:65536", {}, "listeners", "NAME://HOST:PORT"),
        ("://localhost:9092", {}, "listeners", "NAME://HOST:PORT"),
        ("FRONT://:9092", {}, "listener.security.protocol.map", "it has no FRONT"),
        ("PLAINTEXT://:1,PLAINTEXT://:2", {}, "listeners", "names of their own"),
        ("PLAINTEXT://a:1,CONTROLLER://b:1", {"controller_listener_names": "CONTROLLER"}, "listeners", "ports of"),
        (
            "PLAINTEXT://:1",
            {"listener_security_protocol_map": "PLAINTEXT=PLAINTEXT"},
            "listener.security.protocol.map",
            "NAME:PROTOCOL, of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            "PLAINTEXT://:1",
            {"listener_security_protocol_map": "PLAINTEXT:PLAIN"},
            "listener.security.protocol.map",
            "NAME:PROTOCOL",
        ),
    ],
)
def test_what_is_no_listener_is_refused(listeners, settings, key, bound):
    with pytest.raises(ConfigError) as refused:
        parse_listeners(values(listeners, **settings))
    (problem,) = refused.value.problems
    assert problem.key == key
    assert bound in problem.bound


def test_clients_are_told_what_is_advertised():
    assert told("PLAINTEXT://:9092", advertised_listeners="PLAINTEXT://kafka.example:19092") == Endpoint(
        "PLAINTEXT", "kafka.example", 19092, "PLAINTEXT"
    )
    assert told("PLAINTEXT://:9092", advertised_listeners="PLAINTEXT://[2001:db8::1]:1").host == "2001:db8::1"


def test_or_else_where_the_node_listens():
    assert told("PLAINTEXT://localhost:9092") == Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT")


def test_a_free_port_is_told_as_it_was_found():
    assert told("PLAINTEXT://localhost:0", port=40123).port == 40123
    assert told("PLAINTEXT://localhost:0", port=40123, advertised_listeners="PLAINTEXT://outside:0").port == 40123


@pytest.mark.parametrize("everywhere", ["", "0.0.0.0", "[::]"])
def test_who_listens_everywhere_is_reached_by_its_own_name(everywhere):
    assert told(f"PLAINTEXT://{everywhere}:9092").host == "this.machine"
