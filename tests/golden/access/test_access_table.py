"""Every API and version, with each right: our node refuses, hides and tells what Apache Kafka 4.3.1 does.

The table was made by asking Apache Kafka the same with the same rules, and `tests/interop` asks it again.
"""

from typing import Any

from ottla.apis.table import served_by_brokers, served_by_controllers
from ottla.wire.apis import ApiKey
from tests.golden.access.access_requests import ON_BROKERS, ON_CONTROLLERS
from tests.golden.access.access_table import PRINCIPAL, Right, creations, made_table, read_facts
from tests.golden.access.guarded_nodes import GuardedNode
from tests.golden.access.prepared import prepare

FACTS = read_facts()
NOT_IN_THE_TABLE = {
    # Of the connection itself, before anybody is known.
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    # Refused to a client without a name of its own, before any right is looked at.
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    # Of a client's own metrics (KIP-714): Apache Kafka asks for no right.
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    # Would be taken for the registration of this controller.
    ApiKey.CONTROLLER_REGISTRATION,
}


def asked_of_ours() -> dict[str, Any]:
    """The table again, of a node of ours."""
    node = GuardedNode()
    ids = prepare(node.ask)

    def set_rules(rules: tuple[Right, ...]) -> None:
        node.delete_rules()
        node.create_rules(creations(rules))

    def send(request: Any, version: int, to_controller: bool) -> Any:
        return node.ask(request, version, to_controller=to_controller, principal=PRINCIPAL)

    table = made_table(set_rules, send, ids)
    node.whole.stop()
    return table


def test_our_node_refuses_hides_and_tells_what_apache_kafka_does() -> None:
    """One test, because the table is asked for as a whole: each worker of the tests would have to."""
    ours = asked_of_ours()
    differing = [
        f"{title}, with {rules}:\n  Kafka {facts[rules]}\n  ours  {outcomes}"
        for title, facts in FACTS.items()
        for rules, outcomes in ours[title].items()
        if outcomes != facts[rules]
    ]
    assert not differing, "\n".join(differing)


def test_every_api_is_in_the_table() -> None:
    of_brokers = {key for key, _ in ON_BROKERS.values()} | NOT_IN_THE_TABLE
    of_controllers = {key for key, _ in ON_CONTROLLERS.values()} | NOT_IN_THE_TABLE | {ApiKey.API_VERSIONS}
    assert set(served_by_brokers()) - of_brokers == set()
    not_asked = {ApiKey.ALTER_CONFIGS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS}
    assert set(served_by_controllers()) - of_controllers == not_asked
