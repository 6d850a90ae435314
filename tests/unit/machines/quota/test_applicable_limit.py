"""Which limit applies, in Kafka's order (KIP-55)."""

import pytest

from ottla.machines.quota.limits import Limit, Quotas, find_limit

KEY = "producer_byte_rate"
IN_ORDER = (
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
)
SHARED_BY = (("u", "c"), ("u", "c"), ("u", ""), ("u", "c"), ("u", "c"), ("u", ""), ("", "c"), ("", "c"))


def quotas(*entities: dict[str, str | None]) -> Quotas:
    """The n-th entity of the order has the limit n."""
    return {frozenset(one.items()): {KEY: float(IN_ORDER.index(one))} for one in entities}


def find(given: Quotas, user: str, client_id: str) -> Limit | None:
    return find_limit(given, KEY, user, client_id)


@pytest.mark.parametrize("first", range(8))
def test_the_most_specific_limit_applies(first: int) -> None:
    limit = find(quotas(*IN_ORDER[first:]), "u", "c")
    assert limit == (float(first), SHARED_BY[first])


def test_nothing_applies_to_others() -> None:
    of_others = quotas(IN_ORDER[0], IN_ORDER[1], IN_ORDER[2], IN_ORDER[6])
    assert find(of_others, "somebody", "else") is None


def test_a_default_is_a_limit_for_each_and_not_for_all_together() -> None:
    of_users = quotas({"user": None})
    assert find(of_users, "a", "x").sharers == ("a", "")
    assert find(of_users, "b", "x").sharers == ("b", "")


def test_limits_of_another_kind_do_not_hide_one() -> None:
    given = {frozenset({("user", "u")}): {"consumer_byte_rate": 1.0}, frozenset({("user", None)}): {KEY: 2.0}}
    assert find(given, "u", "c").per_second == 2.0


def test_without_a_client_id_only_limits_of_users_apply() -> None:
    assert find(quotas(IN_ORDER[7]), "u", "") is None
    assert find(quotas(IN_ORDER[1], IN_ORDER[5]), "u", "") == (5.0, ("u", ""))
    assert find(quotas(IN_ORDER[1]), "u", "") is None
    assert find(quotas(IN_ORDER[2]), "u", "") == (2.0, ("u", ""))
