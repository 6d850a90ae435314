"""Many delegation tokens are described in steps, and each only to a client that may see it."""

from typing import Any

import pytest

from ottla.broker.admin.delegation_tokens import handle_describe_delegation_token
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.security.sasl import token_hmac
from ottla.wire.apis import ApiKey
from ottla.wire.messages import DelegationTokenRecord
from ottla.wire.messages import DescribeDelegationTokenRequest as Describe
from tests.unit.broker.admin_node import AdminNode

MANY = 20_000
MOST_OF_A_STEP = 100


class InSteps(RequestContext):
    """Keeps the steps, for a test to make them."""

    steps: Steps | None = None

    def go_through(self, steps: Steps, *, in_order: bool = True) -> None:
        self.steps = steps


@pytest.fixture
def node() -> AdminNode:
    node = AdminNode(delegation_token_secret_key="of the cluster")
    node.commit(
        *(DelegationTokenRecord(owner=f"User:{number % 7}", token_id=f"token-{number}") for number in range(MANY))
    )
    return node


def described(node: AdminNode, context: RequestContext, *owners: str) -> list[Any]:
    """The replies, as they come."""
    replies: list[Any] = []
    named = [Describe.DescribeDelegationTokenOwner(principal_type="User", principal_name=owner) for owner in owners]
    handle_describe_delegation_token(
        node.broker.metadata, node.broker.node_settings, context, Describe(owners=named or None), replies.append
    )
    return replies


def a_context() -> InSteps:
    connection = ClientConnection(1, "SASL", "127.0.0.1", principal="User:alice")
    return InSteps(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, 1, None, connection, 0.0)


@pytest.mark.slow
def test_many_tokens_are_described_some_at_a_time(node: AdminNode, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = token_hmac.token_hmac
    monkeypatch.setattr(token_hmac, "token_hmac", lambda key, id_: made.append(id_) or make(key, id_))
    context = a_context()
    replies = described(node, context)
    assert context.steps is not None
    assert not replies
    done = 0
    for _ in context.steps:
        assert len(made) - done <= MOST_OF_A_STEP
        done = len(made)
    (reply,) = replies
    assert [token.token_id for token in reply.tokens] == [f"token-{number}" for number in range(MANY)]


def test_a_client_gets_the_tokens_that_it_may_see_of_the_owners_that_it_names(node: AdminNode) -> None:
    context = a_context()
    context.may_use = lambda token_id: token_id.endswith("0")
    replies = described(node, context, "3")
    assert context.steps is not None
    for _ in context.steps:
        pass
    (reply,) = replies
    assert [token.token_id for token in reply.tokens] == [f"token-{n}" for n in range(0, MANY, 10) if n % 7 == 3]
