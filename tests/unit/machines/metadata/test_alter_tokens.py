"""Delegation tokens (KIP-48): how they are found by what clients show, and how many an owner can have."""

import hmac
from random import Random
from typing import Any

import pytest

from ottla.security.sasl.token_hmac import token_hmac
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from tests.unit.machines.metadata.controllers import ControllerUnderTest

ALICE, BOB = "User:alice", "User:bob"
SECRET = "of the cluster"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Tokens:
    """A controller that is asked for tokens, at an hour that a test moves."""

    def __init__(self, **settings: str) -> None:
        self._settings = {"delegation_token_secret_key": SECRET, **settings}
        self.node = ControllerUnderTest(**self._settings)
        self.now_ms = 1_700_000_000_000

    def fail_over(self) -> None:
        self.node = ControllerUnderTest(self.node.image.copy(), **self._settings)

    def _ask(self, request: Any, who: str, version: int) -> Any:
        return self.node.do(self.node.controller.alter_token(request, version, who, self.now_ms))

    def create(self, who: str = ALICE, **given: Any) -> Any:
        return self._ask(CreateDelegationTokenRequest(**{"max_lifetime_ms": -1, **given}), who, 3)

    def renew(self, shown: bytes, who: str = ALICE, period_ms: int = -1) -> Any:
        return self._ask(RenewDelegationTokenRequest(hmac=shown, renew_period_ms=period_ms), who, 2)

    def expire(self, shown: bytes, who: str = ALICE, period_ms: int = -1) -> Any:
        return self._ask(ExpireDelegationTokenRequest(hmac=shown, expiry_time_period_ms=period_ms), who, 2)

    def remove_expired(self) -> None:
        while self.node.do(self.node.controller.remove_expired_tokens(self.now_ms)):
            pass

    @property
    def kept(self) -> int:
        return len(self.node.image.security.tokens)


def test_a_token_is_found_without_a_look_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens()
    made = [bytes(tokens.create().hmac) for _ in range(500)]
    tokens.renew(made[0])
    count, digest = 0, hmac.digest

    def counted(*given: Any) -> bytes:
        nonlocal count
        count += 1
        return digest(*given)

    monkeypatch.setattr("hmac.digest", counted)
    assert tokens.renew(made[250]).error_code == ErrorCode.NONE
    assert tokens.expire(made[251]).error_code == ErrorCode.NONE
    assert tokens.renew(b"no such token").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert count == 2, "one for each that was found"


@pytest.mark.parametrize("seed", range(10))
def test_whatever_has_happened_a_token_is_found_by_its_own_hmac_and_by_nothing_else(seed: int) -> None:
    chance = Random(seed)
    tokens = Tokens()
    made: dict[str, bytes] = {}
    for _ in range(150):
        match chance.randrange(6):
            case 0 | 1:
                one = tokens.create(chance.choice([ALICE, BOB]), max_lifetime_ms=chance.choice([-1, HOUR_MS]))
                assert bytes(one.hmac) == token_hmac(SECRET, one.token_id)
                made[one.token_id] = bytes(one.hmac)
            case 2 if made:
                tokens.expire(made[chance.choice(sorted(made))], chance.choice([ALICE, BOB]))
            case 3 if made:
                tokens.renew(made[chance.choice(sorted(made))], chance.choice([ALICE, BOB]))
            case 4:
                tokens.now_ms += chance.randrange(4 * HOUR_MS)
                tokens.remove_expired()
            case 5:
                tokens.fail_over()
        index, kept = tokens.node.image.security.token_index, tokens.node.image.security.tokens
        for token_id, shown in made.items():
            assert index.find(shown, SECRET) == (token_id if token_id in kept else None)
            assert index.find(shown[:-1] + bytes([shown[-1] ^ 1]), SECRET) is None
        for owner in (ALICE, BOB):
            assert set(index.of_owner(owner)) == {id for id, token in kept.items() if token.owner == owner}


def test_another_secret_makes_other_hmacs_of_the_same_tokens() -> None:
    tokens = Tokens()
    made = tokens.create()
    index = tokens.node.image.security.token_index
    assert index.find(bytes(made.hmac), SECRET) == made.token_id
    assert index.find(bytes(made.hmac), "another") is None
    assert index.find(token_hmac("another", made.token_id), "another") == made.token_id
    assert index.find(bytes(made.hmac), SECRET) == made.token_id


def test_vulnerability_an_owner_has_a_bounded_number_of_tokens() -> None:
    tokens = Tokens(ottla_delegation_token_max_per_owner="3")
    made = [tokens.create() for _ in range(3)]
    refused = tokens.create()
    assert (refused.error_code, refused.token_id, bytes(refused.hmac)) == (ErrorCode.POLICY_VIOLATION, "", b"")
    assert tokens.kept == 3
    assert tokens.create(BOB).error_code == ErrorCode.NONE, "that of others is their own"
    for_alice = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    assert tokens.create(BOB, **for_alice).error_code == ErrorCode.POLICY_VIOLATION, "whoever asks"
    tokens.expire(bytes(made[1].hmac))
    assert tokens.create().error_code == ErrorCode.NONE


def test_tokens_that_have_expired_make_room() -> None:
    tokens = Tokens(ottla_delegation_token_max_per_owner="3")
    lasting = tokens.create()
    for _ in range(2):
        tokens.create(max_lifetime_ms=HOUR_MS)
    assert tokens.create().error_code == ErrorCode.POLICY_VIOLATION
    tokens.now_ms += HOUR_MS + 1
    assert tokens.create().error_code == ErrorCode.NONE
    assert tokens.kept == 2
    assert tokens.renew(bytes(lasting.hmac)).error_code == ErrorCode.NONE


def test_vulnerability_tokens_that_expire_at_once_do_not_pile_up() -> None:
    """Though they are looked for once in an hour only."""
    tokens = Tokens(ottla_delegation_token_max_per_owner="10")
    for _ in range(200):
        assert tokens.create(max_lifetime_ms=1).error_code == ErrorCode.NONE
        tokens.now_ms += 2
    assert tokens.kept <= 10


def test_renewers_of_a_token_are_bounded() -> None:
    renewer = CreateDelegationTokenRequest.CreatableRenewers
    few, many = (
        [renewer(principal_type="User", principal_name=f"{n:095d}") for n in range(count)] for count in (160, 170)
    )
    tokens = Tokens()
    assert tokens.create(renewers=few).error_code == ErrorCode.NONE
    assert tokens.create(renewers=many).error_code == ErrorCode.POLICY_VIOLATION
