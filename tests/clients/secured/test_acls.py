"""Users with rights and without, over a real node: kafka-acls gives and takes them, clients feel it at once.

The listener without SASL is the administrators' here: User:ANONYMOUS is a super user.
"""

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.cli.main import main
from ottla.testing.free_ports import free_ports
from tests.interop.sasl_node import PLAIN_USERS, a_sasl_node

WAIT_S = 60.0
ALICE = "User:alice"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Guarded(NamedTuple):
    log: Path
    administrators: str
    users: str
    controller: str


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    controller, users = free_ports(2)
    settings = {
        "listeners": (
            f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{users},CONTROLLER://127.0.0.1:{controller}"
        ),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "node.id": "1",
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
    }
    with a_sasl_node(settings) as one:
        yield Guarded(
            one.node.directory / "node.log", one.node.bootstrap, f"127.0.0.1:{users}", f"127.0.0.1:{controller}"
        )


def acls(guarded: Guarded, *words: str, at_controller: bool = False) -> str:
    """What kafka-acls prints."""
    server = (
        ("--bootstrap-controller", guarded.controller)
        if at_controller
        else ("--bootstrap-server", guarded.administrators)
    )
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["acls", *server, *words]) == 0
    return printed.getvalue()


def of_alice(guarded: Guarded, **more: object) -> dict[str, Any]:
    return {
        "bootstrap.servers": guarded.users,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PLAIN_USERS["alice"],
        "log_level": 0,
        **more,
    }


def make_topic(guarded: Guarded, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": guarded.administrators})
    admin.create_topics([NewTopic(name, 1)])[name].result(WAIT_S)


def produced(guarded: Guarded, topic: str, **settings: object) -> int | None:
    """The error code of a record that alice sends; None if it was taken."""
    outcomes: list[int | None] = []
    producer = Producer(of_alice(guarded, **{"message.timeout.ms": 20_000, **settings}))
    producer.produce(topic, b"v", on_delivery=lambda error, _: outcomes.append(error.code() if error else None))
    producer.flush(WAIT_S)
    (outcome,) = outcomes
    return outcome


def eventually(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < ends_s, "it did not come about"
        time.sleep(0.05)


def test_a_producer_writes_once_it_may_and_no_more_when_it_may_not(guarded: Guarded) -> None:
    make_topic(guarded, "orders")
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    plain = {"enable.idempotence": False}
    assert produced(guarded, "orders", **plain) == refused
    assert "Adding ACLs" in acls(guarded, "--add", "--allow-principal", ALICE, "--producer", "--topic", "orders")
    eventually(lambda: produced(guarded, "orders", **plain) is None)
    assert produced(guarded, "orders", **{"enable.idempotence": True}) is None, "WRITE on a topic is enough (KIP-679)"
    acls(guarded, "--remove", "--force", "--topic", "orders")
    eventually(lambda: produced(guarded, "orders", **plain) == refused)


def test_a_connection_that_writes_is_refused_from_the_moment_that_it_may_not(guarded: Guarded) -> None:
    make_topic(guarded, "cut-off")
    acls(guarded, "--add", "--allow-principal", ALICE, "--producer", "--topic", "cut-off")
    outcomes: list[int | None] = []
    producer = Producer(of_alice(guarded, **{"enable.idempotence": False, "linger.ms": 0}))

    def send() -> int | None:
        producer.produce("cut-off", b"v", on_delivery=lambda error, _: outcomes.append(error.code() if error else None))
        producer.flush(WAIT_S)
        return outcomes[-1]

    eventually(lambda: send() is None)
    for _ in range(20):
        assert send() is None
    acls(guarded, "--remove", "--force", "--topic", "cut-off")
    eventually(lambda: send() == KafkaError.TOPIC_AUTHORIZATION_FAILED)


def read_one(guarded: Guarded, topic: str, group: str) -> Message:
    consumer = Consumer(of_alice(guarded, **{"group.id": group, "auto.offset.reset": "earliest"}))
    consumer.subscribe([topic])
    ends_s = time.monotonic() + WAIT_S
    try:
        while time.monotonic() < ends_s:
            message = consumer.poll(0.2)
            if message is not None:
                return message
    finally:
        consumer.close()
    raise AssertionError("nothing came")


def test_a_consumer_needs_its_group_and_its_topic(guarded: Guarded) -> None:
    make_topic(guarded, "read")
    acls(guarded, "--add", "--allow-principal", ALICE, "--producer", "--topic", "read")
    eventually(lambda: produced(guarded, "read") is None)
    error = read_one(guarded, "read", "readers").error()
    assert error is not None
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    acls(guarded, "--add", "--allow-principal", ALICE, "--consumer", "--topic", "read", "--group", "readers")
    assert read_one(guarded, "read", "readers").error() is None


def test_topics_that_may_not_be_described_are_not_there(guarded: Guarded) -> None:
    make_topic(guarded, "hidden")
    make_topic(guarded, "shown-1")
    acls(guarded, "--add", "--allow-principal", ALICE, "--operation", "Describe", "--topic", "shown-",
         "--resource-pattern-type", "prefixed")  # fmt: skip
    admin = AdminClient(of_alice(guarded))
    eventually(lambda: "shown-1" in admin.list_topics(timeout=WAIT_S).topics)
    assert "hidden" not in admin.list_topics(timeout=WAIT_S).topics
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic("hers", 1)])["hers"].result(WAIT_S)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_deny_is_stronger_and_hosts_count(guarded: Guarded) -> None:
    make_topic(guarded, "denied")
    acls(guarded, "--add", "--allow-principal", "User:*", "--operation", "All", "--topic", "denied")
    eventually(lambda: produced(guarded, "denied") is None)
    acls(
        guarded,
        "--add",
        "--deny-principal",
        ALICE,
        "--deny-host",
        "127.0.0.2",
        "--operation",
        "Write",
        "--topic",
        "denied",
    )
    assert produced(guarded, "denied") is None, "she is somewhere else"
    acls(
        guarded,
        "--add",
        "--deny-principal",
        ALICE,
        "--deny-host",
        "127.0.0.0/8",
        "--operation",
        "Write",
        "--topic",
        "denied",
    )
    eventually(lambda: produced(guarded, "denied") == KafkaError.TOPIC_AUTHORIZATION_FAILED)


def test_a_refusal_is_a_line_in_the_log_of_a_node_that_nobody_configured_to_say_much(guarded: Guarded) -> None:
    admin = AdminClient(of_alice(guarded))
    with pytest.raises(KafkaException):
        admin.create_topics([NewTopic("audited", 1)])["audited"].result(WAIT_S)
    (line,) = (line for line in guarded.log.read_text().splitlines() if '"audited"' in line)
    told = json.loads(line[line.index("{") :])
    assert (told["principal"], told["host"], told["operation"]) == (ALICE, "127.0.0.1", "CREATE")


@pytest.mark.parametrize("at_controller", [False, True])
def test_every_option_of_the_tool_makes_its_rules(guarded: Guarded, at_controller: bool) -> None:
    me = f"tool-{at_controller}"

    def run(words: str) -> str:
        return acls(guarded, *words.format(me=me).split(), at_controller=at_controller)

    for words in (
        "--add --allow-principal User:bob --operation Read --operation Write --topic {me}",
        "--add --allow-principal User:bob --producer --topic {me} --transactional-id {me} --idempotent",
        "--add --allow-principal User:bob --consumer --topic {me} --group {me}",
        "--add --deny-principal User:eve --deny-host 10.1.1.1 --operation All --topic {me}",
        "--add --allow-principal User:bob --allow-host 10.1.1.1 --cluster --operation Alter",
        "--add --allow-principal User:bob --topic {me}- --resource-pattern-type prefixed --operation Read",
        "--add --allow-principal User:bob --user-principal User:{me} --operation CreateTokens",
        "--add --allow-principal User:bob --delegation-token {me} --operation Describe",
    ):
        assert "Adding ACLs" in run(words), words
    assert "already exists" in run("--add --allow-principal User:bob --operation Read --topic {me}")
    listed = run("--list --topic {me}")
    assert f"name={me}, patternType=LITERAL" in listed
    for operation in ("READ", "WRITE", "CREATE", "DESCRIBE"):
        assert f"(principal=User:bob, host=*, operation={operation}, permissionType=ALLOW)" in listed
    assert "(principal=User:eve, host=10.1.1.1, operation=ALL, permissionType=DENY)" in listed
    assert "patternType=PREFIXED" in run("--list --topic {me}-1 --resource-pattern-type match")
    assert "User:eve" not in run("--list --principal User:bob --topic {me}")
    assert "IDEMPOTENT_WRITE" in run("--list --cluster")
    run("--remove --force --allow-principal User:bob --operation Read --topic {me}")
    assert "operation=READ" not in run("--list --topic {me}")
    for resource in ("--topic", "--group", "--transactional-id", "--delegation-token"):
        run(f"--remove --force {resource} {{me}} --resource-pattern-type any")
        assert run(f"--list {resource} {{me}} --resource-pattern-type any") == ""
    run("--remove --force --cluster")
    assert "CLUSTER" not in run("--list")
