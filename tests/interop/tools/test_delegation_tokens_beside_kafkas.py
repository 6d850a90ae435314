"""kafka-delegation-tokens prints what Kafka's prints."""

import time
from collections.abc import Iterator

import pytest

from tests.interop.secured_kafka import SecuredKafka
from tests.interop.tools.beside import NAMES, Beside
from tests.interop.tools.kafkas_tools import KafkasTools, Printed

pytestmark = pytest.mark.interop

TOOL = "kafka-delegation-tokens {at} --command-config {files}/alice.properties"


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with SecuredKafka(tmp_path_factory.mktemp("tokens")) as kafka, KafkasTools() as tools:
        settings = kafka.client("SASL_PLAINTEXT", "SCRAM-SHA-256")
        beside = Beside(tools, str(settings["bootstrap.servers"]), "no-controller", tmp_path_factory.mktemp("files"))
        beside.file("alice.properties", "".join(f"{key}={value}\n" for key, value in settings.items()))
        nobody = kafka.client("PLAINTEXT")
        beside.file("nobody.properties", f"security.protocol={nobody['security.protocol']}\n")
        beside.file("plain-address", str(nobody["bootstrap.servers"]))
        yield beside


def scene(beside: Beside, me: str) -> list[Printed]:
    """A token's life, from its creation to its end."""
    made = beside.printed(me, TOOL + " --create --max-life-time-period -1 --renewer-principal User:{me}")
    assert made.exit_code == 0, made
    hmac = made.out.split()[-7]
    until_shown(beside, me, hmac)
    commands = [
        TOOL + " --describe --owner-principal User:{me}",
        TOOL + " --describe --owner-principal User:nobody",
        TOOL + f" --renew --renew-time-period 3600000 --hmac {hmac}",
        TOOL + f" --expire --expiry-time-period 60000 --hmac {hmac}",
        TOOL + f" --expire --expiry-time-period -1 --hmac {hmac}",
        TOOL + f" --renew --renew-time-period -1 --hmac {hmac}",
    ]
    return [beside._normal(made, NAMES.index(me), ordered=True), *beside.transcript(me, commands)]


def until_shown(beside: Beside, me: str, text: str) -> None:
    """A broker hears of a token a moment after the controller has answered."""
    deadline_s = time.monotonic() + 60
    while text not in beside.printed(me, TOOL + " --describe --owner-principal User:alice").out:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_a_token_is_made_shown_renewed_and_ended(tokens: Beside) -> None:
    kafkas, ours = (scene(tokens, me) for me in NAMES)
    assert ours == kafkas


def test_several_renewers_and_all_tokens_of_a_user(tokens: Beside) -> None:
    renewers = "--renewer-principal User:{me} --renewer-principal User:bob"
    tokens.same(f"{TOOL} --create --max-life-time-period 600000 {renewers}")
    for me in NAMES:
        until_shown(tokens, NAMES[0], f"[User:{me}, User:bob]")
    tokens.same(f"{TOOL} --describe --owner-principal User:alice", ordered=False)


def test_without_an_owner_all_tokens_are_shown(tokens: Beside) -> None:
    """As its help has it. Kafka's asks for the tokens of no owner, and shows none."""
    tokens.both(f"{TOOL} --create --max-life-time-period 600000 --renewer-principal User:shown")
    until_shown(tokens, NAMES[0], "[User:shown]")
    kafkas, ours = (tokens.printed(me, f"{TOOL} --describe").out for me in NAMES)
    assert "Total number of tokens : 0" in kafkas
    assert "[User:shown]" in ours


def test_a_period_that_is_none_is_told(tokens: Beside) -> None:
    """Kafka's tells of a NullPointerException."""
    for me in NAMES:
        assert tokens.printed(me, f"{TOOL} --create --max-life-time-period x").exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        "--create",
        "--create --describe",
        "--create --max-life-time-period -1 --hmac x",
        "--create --max-life-time-period -1 --renew-time-period 1",
        "--create --max-life-time-period -1 --expiry-time-period 1",
        "--create --max-life-time-period -1 --renewer-principal nobody",
        "--create --max-life-time-period -1 --owner-principal nobody",
        "--create --max-life-time-period -1 --renewer-principal Group:staff",
        "--renew --hmac eA==",
        "--renew --renew-time-period -1",
        "--renew --renew-time-period -1 --hmac eA==",
        "--renew --renew-time-period -1 --hmac eA== --renewer-principal User:x",
        "--renew --renew-time-period -1 --hmac eA== --max-life-time-period 1",
        "--renew --renew-time-period -1 --hmac eA== --expiry-time-period 1",
        "--renew --renew-time-period -1 --hmac eA== --owner-principal User:x",
        "--expire --hmac eA==",
        "--expire --expiry-time-period -1 --hmac eA==",
        "--expire --expiry-time-period -1 --hmac eA== --renewer-principal User:x",
        "--expire --expiry-time-period -1 --hmac eA== --max-life-time-period 1",
        "--expire --expiry-time-period -1 --hmac eA== --renew-time-period 1",
        "--expire --expiry-time-period -1 --hmac eA== --owner-principal User:x",
        "--describe --renewer-principal User:x --owner-principal User:nobody",
        "--describe --max-life-time-period 1",
        "--describe --hmac x",
        "--describe --renew-time-period 1",
        "--describe --expiry-time-period 1",
        "--nonsense",
        "",
    ],
)
def test_what_is_wrong_is_told_alike(tokens: Beside, words: str) -> None:
    tokens.same(f"{TOOL} {words}")


@pytest.mark.parametrize("words", ["--describe", "{at} --describe", "--help", "--version", ""])
def test_what_is_missing_is_told_alike(tokens: Beside, words: str) -> None:
    tokens.same(f"kafka-delegation-tokens {words}")


def test_nobody_in_particular_may_not_have_a_token(tokens: Beside) -> None:
    address = (tokens.directory / NAMES[0] / "plain-address").read_text()
    command = f"kafka-delegation-tokens --bootstrap-server {address} --command-config {{files}}/nobody.properties"
    tokens.same(f"{command} --create --max-life-time-period -1")
    tokens.same(f"{command} --describe")
