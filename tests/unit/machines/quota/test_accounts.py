"""What clients used, by the limit that they share."""

import pytest

from ottla.machines.quota import limits, rates
from ottla.machines.quota.limits import IDLE_MS, Accounts, Limit, Sharers
from ottla.machines.quota.rates import Windows


def limit_of(user: str, per_second: float = 100.0) -> Limit:
    return Limit(per_second, Sharers(user, ""))


def test_clients_that_share_a_limit_are_counted_together_and_others_apart() -> None:
    accounts = Accounts(Windows())
    assert accounts.charge(limit_of("a"), 900, 0) == 0
    assert accounts.charge(limit_of("b"), 900, 0) == 0
    assert accounts.charge(limit_of("a"), 200, 0) > 1000


def test_what_was_used_counts_against_a_limit_that_is_changed() -> None:
    accounts = Accounts(Windows())
    accounts.charge(limit_of("a"), 900, 0)
    assert accounts.charge(limit_of("a", 50.0), 0, 0) > 8000


def test_a_wait_may_be_bounded() -> None:
    accounts = Accounts(Windows(), longest_throttle_ms=1000)
    assert accounts.charge(limit_of("a"), 1_000_000, 0) == 1000


def test_throttle_times_are_told_as_a_mean() -> None:
    accounts = Accounts(Windows())
    accounts.note_throttle(limit_of("a"), 100, 0)
    accounts.note_throttle(limit_of("a"), 300, 1500)
    ((_, account),) = accounts.items()
    assert account.throttle_times.mean_ms(2000) == 200
    assert account.throttle_times.mean_ms(60_000) == 0


def test_waits_are_counted_until_they_end_and_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MOST_WAITS", 3)
    waiting = rates.ThrottledClients()
    for throttle_ms in (300, 100, 200, 400):
        waiting.add(throttle_ms, 0)
    assert [waiting.count(now_ms) for now_ms in (0, 100, 250, 300)] == [3, 2, 1, 0]
    waiting.add(50, 300)
    assert waiting.count(310) == 1


def test_an_account_that_nobody_uses_is_forgotten() -> None:
    accounts = Accounts(Windows())
    accounts.charge(limit_of("a"), 1, 0)
    accounts.charge(limit_of("b"), 1, 10)
    accounts.charge(limit_of("a"), 1, 20)
    accounts.expire(IDLE_MS + 10)
    assert [sharers.user for sharers, _ in accounts.items()] == ["a"]


def test_names_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_ACCOUNTS", 3)
    accounts = Accounts(Windows())
    for name in "abcbd":
        accounts.charge(limit_of(name), 1, 0)
    assert [sharers.user for sharers, _ in accounts.items()] == ["c", "b", "d"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000, 16_000, 50_000])
def test_a_client_that_waits_as_told_gets_its_limit_within_a_tenth_in_any_ten_seconds(size: int) -> None:
    accounts, now_ms, sent = Accounts(Windows()), 0, dict.fromkeys(range(6), 0)
    while now_ms < 60_000:
        sent[now_ms // 10_000] += size
        now_ms += 1 + accounts.charge(limit_of("a", 1_000_000.0), size, now_ms)
    assert list(sent.values()) == pytest.approx([10_000_000] * 6, rel=0.1)


@pytest.mark.parametrize("size", [20_000, 50_000, 100_000, 500_000])
@pytest.mark.parametrize("pause_ms", [0.05, 0.2, 1, 5])
def test_a_consumer_whose_replies_are_withheld_gets_its_limit_within_a_tenth_too(size: int, pause_ms: float) -> None:
    """What would be above the limit is not sent, and does not count. Clients come in the middle of milliseconds."""
    accounts, now_ms, sent = Accounts(Windows()), 0.3, dict.fromkeys(range(5), 0)
    limit = limit_of("a", 1_000_000.0)
    while now_ms < 50_000:
        throttle_ms = accounts.charge(limit, size, int(now_ms))
        if throttle_ms:
            accounts.note(limit, -size, int(now_ms))
        else:
            sent[int(now_ms) // 10_000] += size
        now_ms += pause_ms + throttle_ms
    assert list(sent.values()) == pytest.approx([10_000_000] * 5, rel=0.1)


def test_a_client_that_keeps_to_its_limit_by_itself_is_hardly_slowed() -> None:
    accounts, now_ms, sent = Accounts(Windows()), 0, dict.fromkeys(range(5), 0)
    while now_ms < 50_000:
        sent[now_ms // 10_000] += 1000
        now_ms += 1 + accounts.charge(limit_of("a", 1_000_000.0), 1000, now_ms)
    assert list(sent.values()) == pytest.approx([10_000_000] * 5, rel=0.1)
