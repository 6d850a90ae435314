"""kafka-acls prints what Kafka's prints."""

import pytest

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop


def test_rules_are_added_listed_and_removed(beside: Beside) -> None:
    for words in (
        "--add --allow-principal User:bob-{me} --operation Read --operation Write --topic t1-{me}",
        "--list --topic t1-{me}",
        "--add --allow-principal User:bob-{me} --producer --topic t1-{me} --transactional-id x-{me}",
        "--add --allow-principal User:bob-{me} --consumer --topic t1-{me} --group g-{me}",
        "--add --deny-principal User:eve-{me} --deny-host 1.2.3.4 --topic d-{me} --operation all",
        "--add --allow-principal User:bob-{me} --topic pre-{me} --resource-pattern-type prefixed",
        "--list --principal User:bob-{me} --topic t1-{me}",
        "--list --topic t1-{me} --resource-pattern-type any",
        "--list --topic pre-{me}1 --resource-pattern-type match",
        "--add --allow-principal User:bob-{me} --producer --topic i-{me} --idempotent",
        "--add --allow-principal User:bob-{me} --user-principal User:ann-{me} --operation CreateTokens",
        "--add --allow-principal User:bob-{me} --delegation-token tok-{me} --operation Describe",
        "--list",
        "--remove --force --allow-principal User:bob-{me} --operation Read --topic t1-{me}",
        "--list --topic t1-{me}",
        "--remove --force --topic pre-{me} --resource-pattern-type any",
        "--list --topic pre-{me} --resource-pattern-type any",
        "--remove --force --group g-{me}",
        "--list --group g-{me}",
    ):
        beside.same(f"kafka-acls {{at}} {words}", ordered=False)


def test_removing_is_asked_about_first(beside: Beside) -> None:
    beside.both("kafka-acls {at} --add --allow-principal User:bob --topic asked-{me} --operation Read")
    me = NAMES[1]
    kept = beside.printed(me, "kafka-acls {at} --remove --topic asked-{me}", input="n\n")
    assert kept.out.endswith("? (y/n)\n")
    assert "operation=READ" in beside.printed(me, "kafka-acls {at} --list --topic asked-{me}").out
    beside.printed(me, "kafka-acls {at} --remove --topic asked-{me}", input="y\n")
    assert beside.printed(me, "kafka-acls {at} --list --topic asked-{me}").out == ""


@pytest.mark.parametrize(
    "words",
    [
        "{at} --add --topic x",
        "{at} --add --allow-principal User:bob",
        "{at} --add --allow-principal User:bob --topic x --resource-pattern-type any",
        "{at} --add --list",
        "{at}",
        "--list",
        "{at} --add --allow-principal User:bob --producer --consumer --topic x",
        "{at} --add --allow-principal User:bob --producer --group x",
        "{at} --add --allow-principal User:bob --idempotent --topic x",
        "{at} --list --allow-principal User:bob",
        "{at} --nonsense",
    ],
)
def test_what_is_wrong_is_told_alike(beside: Beside, words: str) -> None:
    beside.same(f"kafka-acls {words}")


def test_an_operation_that_a_resource_does_not_have_is_refused(beside: Beside) -> None:
    for operation in ("bad", "IdempotentWrite"):
        command = f"kafka-acls {{at}} --add --allow-principal User:bob --topic x --operation {operation}"
        for me in NAMES:
            printed = beside.printed(me, command)
            assert printed.exit_code == 1
            assert printed.err.startswith("ResourceType TOPIC only supports operations [")
