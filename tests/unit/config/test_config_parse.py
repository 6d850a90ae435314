"""Properties become checked values; what is wrong is told all at once, what is odd is told as warnings."""

import time

import pytest

from ottla.base.errors import OttlaError
from ottla.config.parse import ConfigError, Parsed, Problem, parse
from ottla.config.scopes import Scope
from ottla.config.values import Password, Type, parse_value, value_text

NODE = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}


def parse_broker(**properties: str) -> Parsed:
    return parse(Scope.BROKER, NODE | {key.replace("__", "-").replace("_", "."): v for key, v in properties.items()})


def test_given_values_are_typed_and_the_rest_are_defaults() -> None:
    values = parse_broker(num_io_threads=" 16 ", log_preallocate="TRUE", log_dirs="/a, /b").values
    assert values.integer("num.io.threads") == 16
    assert values.flag("log.preallocate") is True
    assert values.list("log.dirs") == ("/a", "/b")
    assert values.integer("num.network.threads") == 3
    assert values.text("compression.type") == "producer"
    assert values.number("log.cleaner.min.cleanable.ratio") == 0.5
    assert "num.io.threads" in values.given
    assert "num.network.threads" not in values.given


def test_a_value_out_of_bounds_names_key_value_and_bound() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_broker(compression_lz4_level="18")
    assert str(refused.value) == "compression.lz4.level=18: it must be from 1 to 17"
    assert isinstance(refused.value, OttlaError)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse(Scope.BROKER, {"process.roles": "janitor", "num.io.threads": "many", "log.preallocate": "yes"})
    assert refused.value.problems == (
        Problem("process.roles", "janitor", "a list of broker, controller without repeats, and not empty"),
        Problem("num.io.threads", "many", "a whole number of 32 bits"),
        Problem("log.preallocate", "yes", "true or false"),
        Problem("node.id", None, "at least 0"),
        Problem("controller.listener.names", None, "a list without repeats, and not empty"),
    )
    assert "node.id is missing: it must be at least 0" in str(refused.value)


def test_an_unknown_key_is_warned_about_by_name_and_left_out() -> None:
    parsed = parse_broker(num_oi_threads="16")
    assert [str(w) for w in parsed.warnings if w.key == "num.oi.threads"] == [
        "num.oi.threads: no setting has this name (did you mean num.io.threads?); it is ignored"
    ]
    assert "num.oi.threads" not in parsed.values


def test_a_setting_that_is_not_acted_on_is_accepted_and_warned_about_once() -> None:
    parsed = parse_broker(replica_socket_receive_buffer_bytes="5")
    assert parsed.values.integer("replica.socket.receive.buffer.bytes") == 5
    assert [w.key for w in parsed.warnings].count("replica.socket.receive.buffer.bytes") == 1


def test_defaults_bring_no_warnings() -> None:
    assert {w.key for w in parse_broker().warnings} <= set(NODE)


def test_a_setting_of_one_listener_is_checked_by_the_settings_own_row() -> None:
    values = parse_broker(listener_name_internal_max_connections="7").values
    assert values.integer("listener.name.internal.max.connections") == 7
    with pytest.raises(ConfigError, match=r"listener\.name\.internal\.max\.connections=-1: it must be at least 0"):
        parse_broker(listener_name_internal_max_connections="-1")


def test_a_setting_of_one_mechanism_of_a_listener_is_known() -> None:
    parsed = parse(Scope.BROKER, NODE | {"listener.name.internal.plain.sasl.jaas.config": "secret"})
    assert parsed.values["listener.name.internal.plain.sasl.jaas.config"] == Password("secret")


def test_a_secret_is_never_shown() -> None:
    values = parse(Scope.BROKER, NODE | {"ssl.key.password": "hunter2"}).values
    secret = values.secret("ssl.key.password")
    assert secret is not None
    assert secret.secret == "hunter2"
    for shown in (repr(secret), str(secret), f"{secret}", repr(values), value_text(secret), repr({"a": secret})):
        assert "hunter2" not in shown
        assert "[hidden]" in shown


def test_reading_a_setting_as_another_type_is_a_bug() -> None:
    values = parse_broker().values
    with pytest.raises(AssertionError, match=r"listeners is not text"):
        values.text("listeners")
    with pytest.raises(KeyError):
        values.integer("no.such.setting")


def test_values_are_a_mapping_of_all_settings() -> None:
    values = parse_broker(num_io_threads="16").values
    assert len(values) == len(dict(values)) == 349


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (Type.BOOLEAN, " False ", False),
        (Type.SHORT, "-32768", -32768),
        (Type.INT, "+007", 7),
        (Type.LONG, "9223372036854775807", 2**63 - 1),
        (Type.DOUBLE, "1.5F", 1.5),
        (Type.DOUBLE, ".5", 0.5),
        (Type.LIST, "", ()),
        (Type.LIST, " a , b,,", ("a", "b", "", "")),
        (Type.STRING, "\t a b ", "a b"),
        (Type.CLASS, "org.example.Policy", "org.example.Policy"),
        (Type.PASSWORD, " secret ", Password("secret")),
    ],
)
def test_text_becomes_a_value_as_it_does_in_apache_kafka(type: Type, text: str, value: object) -> None:
    assert parse_value(type, text) == value


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (Type.SHORT, "32768"),
        (Type.INT, "2147483648"),
        (Type.INT, "1_000"),
        (Type.INT, ""),
        (Type.LONG, "9" * 10_000),
    ],
)
def test_a_number_that_does_not_fit_is_refused(type: Type, text: str) -> None:
    with pytest.raises(ValueError, match="a whole number of"):
        parse_value(type, text)


def test_a_long_number_that_is_none_is_refused_at_once() -> None:
    """In time that is linear in its length: clients send settings."""
    started = time.process_time()
    with pytest.raises(ValueError, match="a number"):
        parse_value(Type.DOUBLE, "1" * 30_000 + "x")
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (True, "true"), (("a", "b"), "a,b"), (0.5, "0.5"), (-1, "-1"), ("x", "x")]
)
def test_a_value_is_shown_as_a_file_would_have_it(value: object, text: str) -> None:
    assert value_text(value) == text  # type: ignore[arg-type]
