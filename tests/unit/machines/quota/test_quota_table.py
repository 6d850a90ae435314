"""Which limit applies, in Kafka's order (KIP-55)."""

import pytest

from ottla.machines.quota.quota_table import QuotaTable

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


def table(*entities: dict[str, str | None], key: str = KEY) -> QuotaTable:
    """The n-th entity of the order has the limit n."""
    return QuotaTable(KEY, {frozenset(one.items()): {key: float(IN_ORDER.index(one))} for one in entities})


@pytest.mark.parametrize("first", range(8))
def test_the_most_specific_limit_applies(first: int) -> None:
    limit = table(*IN_ORDER[first:]).find("u", "c")
    assert limit == (float(first), SHARED_BY[first])


def test_nothing_applies_to_others() -> None:
    of_others = table(IN_ORDER[0], IN_ORDER[1], IN_ORDER[2], IN_ORDER[6])
    assert of_others.find("somebody", "else") is None
    assert not table()
    assert of_others


def test_a_default_is_a_limit_for_each_and_not_for_all_together() -> None:
    of_users = table({"user": None})
    assert of_users.find("a", "x").sharers == ("a", "")
    assert of_users.find("b", "x").sharers == ("b", "")


def test_limits_of_another_kind_do_not_hide_one() -> None:
    quotas = {frozenset({("user", "u")}): {"consumer_byte_rate": 1.0}, frozenset({("user", None)}): {KEY: 2.0}}
    assert QuotaTable(KEY, quotas).find("u", "c").per_second == 2.0


def test_limits_of_addresses_are_not_of_clients() -> None:
    assert not QuotaTable(KEY, {frozenset({("ip", "10.0.0.1")}): {KEY: 1.0}})


def test_without_a_client_id_only_limits_of_users_apply() -> None:
    assert table(IN_ORDER[7]).find("u", "") is None
    assert table(IN_ORDER[1], IN_ORDER[5]).find("u", "") == (5.0, ("u", ""))
