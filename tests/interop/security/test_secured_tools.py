"""Our command-line tools over SASL_SSL against Apache Kafka, with an authorizer: a properties file is all they need."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.secured_kafka import SecuredKafka

pytestmark = pytest.mark.interop

SUPER_USERS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice;User:ANONYMOUS",
}
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("secured-tools"), config=SUPER_USERS) as kafka:
        yield kafka


class Tools:
    """Runs tools with the settings of one user, which are in a file."""

    def __init__(self, kafka: SecuredKafka, file: Path, **settings: str) -> None:
        given = kafka.client("SASL_SSL", "SCRAM-SHA-512", **settings)
        self.bootstrap = str(given.pop("bootstrap.servers"))
        file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        self.file = str(file)

    def __call__(self, tool: str, *words: str, input: str = "", fails: bool = False) -> str:
        program = Path(sys.executable).parent / tool
        done = subprocess.run([program, *words], input=input, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def admin(self, tool: str, *words: str, fails: bool = False) -> str:
        return self(tool, "--bootstrap-server", self.bootstrap, "--command-config", self.file, *words, fails=fails)


@pytest.fixture
def alice(kafka: SecuredKafka, tmp_path: Path) -> Tools:
    return Tools(kafka, tmp_path / "alice.properties")


def test_topics_records_settings_and_acls_are_one_file_away(alice: Tools, kafka: SecuredKafka, tmp_path: Path) -> None:
    server = ("--bootstrap-server", alice.bootstrap, "--topic", "tools")
    alice.admin("kafka-topics", "--create", "--topic", "tools")
    alice("kafka-console-producer", *server, "--producer.config", alice.file, input="one\n")
    alice("kafka-console-producer", *server, "--command-config", alice.file, input="two\n")
    words = (*server, "--from-beginning", "--max-messages", "2")
    for option in ("--consumer.config", "--command-config"):
        read = alice("kafka-console-consumer", *words, option, alice.file)
        assert {"one", "two"} <= set(read.split())

    changed = ("--entity-type", "topics", "--entity-name", "tools")
    alice.admin("kafka-configs", "--alter", *changed, "--add-config", "retention.ms=1000")
    assert "retention.ms=1000" in alice.admin("kafka-configs", "--describe", *changed)

    bob = Tools(kafka, tmp_path / "bob.properties", user="bob")
    assert "TopicAuthorization" in bob("kafka-console-consumer", *words, "--command-config", bob.file, fails=True)
    alice.admin(
        "kafka-acls", "--add", "--allow-principal", "User:bob", "--consumer", "--topic", "tools", "--group", "*"
    )
    assert "User:bob" in alice.admin("kafka-acls", "--list")
    # A broker hears of rules a moment after the controller has answered: describing the topic needs one of them.
    deadline_s = time.monotonic() + TIMEOUT_S
    while "tools" not in bob.admin("kafka-topics", "--list").split():
        assert time.monotonic() < deadline_s
    assert "one" in bob("kafka-console-consumer", *words, "--command-config", bob.file).split()


def test_a_property_of_the_command_line_is_taken_like_one_of_the_file(alice: Tools, kafka: SecuredKafka) -> None:
    given = kafka.client("SASL_SSL", "SCRAM-SHA-512")
    server = str(given.pop("bootstrap.servers"))
    words = [word for name, value in given.items() for word in ("--command-property", f"{name}={value}")]
    alice("kafka-console-producer", "--bootstrap-server", server, "--topic", "by-property", *words, input="one\n")
    read = ("--topic", "by-property", "--from-beginning", "--max-messages", "1")
    assert "one" in alice("kafka-console-consumer", "--bootstrap-server", server, *read, *words).split()


def test_our_own_commands_take_the_same_file(alice: Tools, tmp_path: Path) -> None:
    alice.admin("kafka-topics", "--create", "--topic", "ours")
    alice("ottla", "produce", "ours", "-b", alice.bootstrap, "--command-config", alice.file, input="one\ntwo\n")
    words = ("-b", alice.bootstrap, "--command-config", alice.file)
    assert "one" in alice("ottla", "consume", "ours", *words, "--max", "1")
    assert "two" in alice("ottla", "tail", "ours", *words, "--from-beginning", "--max", "2")
    to = ("--to-server", alice.bootstrap, "--to-config", alice.file)
    alice.admin("kafka-topics", "--create", "--topic", "copied")
    alice("ottla", "copy", "ours", "copied", *words, *to)
    assert "two" in alice("ottla", "consume", "copied", *words)


def test_a_wrong_password_is_told_in_the_brokers_words_and_no_secret_is_printed(
    kafka: SecuredKafka, tmp_path: Path
) -> None:
    mallory = Tools(kafka, tmp_path / "mallory.properties", password="not-the-password")
    said = mallory.admin("kafka-topics", "--list", fails=True)
    said += mallory("ottla", "tail", "x", "-b", mallory.bootstrap, "--command-config", mallory.file, fails=True)
    assert "invalid credentials" in said
    assert "not-the-password" not in said
    assert "Traceback" not in said
