"""Delegation tokens: create, renew, expire, describe (KIP-48). Principals are written as `User:alice`."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.client.admin.asking import Asking
from ottla.client.errors import error_for
from ottla.wire import messages
from ottla.wire.errors import ErrorCode

_WHY = {
    ErrorCode.POLICY_VIOLATION: "The owner has as many delegation tokens as it may have"
    " (ottla.delegation.token.max.per.owner of the controllers), or the token has too many renewers. End tokens that"
    " are not needed, with kafka-delegation-tokens --expire."
}
"""These responses have no room for a message."""


class DelegationToken(NamedTuple):
    token_id: str
    hmac: bytes
    """What a client authenticates with: keep it secret."""
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_lifetime_ms: int
    """The time, since 1970, beyond which it cannot be renewed."""

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r} of {self.owner}, expires at {self.expires_ms})"


async def create_delegation_token(
    asking: Asking,
    *,
    owner: str | None = None,
    renewers: Iterable[str] = (),
    max_lifetime_ms: int | None = None,
    timeout: float | None = None,
) -> DelegationToken:
    """A token for this principal, or for another one that it may act for."""
    renewer = messages.CreateDelegationTokenRequest.CreatableRenewers
    given = [_split(one) for one in renewers]
    request = messages.CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else _split(owner)[0],
        owner_principal_name=None if owner is None else _split(owner)[1],
        renewers=[renewer(principal_type=type, principal_name=name) for type, name in given],
        max_lifetime_ms=-1 if max_lifetime_ms is None else max_lifetime_ms,
    )
    answer = _checked(await asking.any(request, asking.deadline(timeout)))
    return DelegationToken(
        answer.token_id,
        bytes(answer.hmac),
        f"{answer.principal_type}:{answer.principal_name}",
        f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        tuple(f"{type}:{name}" for type, name in given),
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
    )


async def renew_delegation_token(
    asking: Asking, hmac: bytes, *, renew_period_ms: int = -1, timeout: float | None = None
) -> int:
    """Until when it is valid now, in ms since 1970. Without a period, the broker's own is taken."""
    request = messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)
    return int(_checked(await asking.any(request, asking.deadline(timeout))).expiry_timestamp_ms)


async def expire_delegation_token(
    asking: Asking, hmac: bytes, *, expiry_period_ms: int = -1, timeout: float | None = None
) -> int:
    """Until when it is valid now, in ms since 1970. Without a period, it ends at once."""
    request = messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_period_ms)
    return int(_checked(await asking.any(request, asking.deadline(timeout))).expiry_timestamp_ms)


async def describe_delegation_tokens(
    asking: Asking, owners: Iterable[str] | None = None, *, timeout: float | None = None
) -> list[DelegationToken]:
    """The tokens of these owners, or all, as far as this principal may see them."""
    owner = messages.DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    wanted = None if owners is None else [_split(one) for one in owners]
    request = messages.DescribeDelegationTokenRequest(
        owners=None if wanted is None else [owner(principal_type=type, principal_name=name) for type, name in wanted]
    )
    response = _checked(await asking.any(request, asking.deadline(timeout)))
    return [
        DelegationToken(
            one.token_id,
            bytes(one.hmac),
            f"{one.principal_type}:{one.principal_name}",
            f"{one.token_requester_principal_type}:{one.token_requester_principal_name}",
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in one.renewers),
            one.issue_timestamp,
            one.expiry_timestamp,
            one.max_timestamp,
        )
        for one in response.tokens
    ]


def _checked(response: Any) -> Any:
    if response.error_code:
        raise error_for(response.error_code, _WHY.get(response.error_code))
    return response


def _split(principal: str) -> tuple[str, str]:
    type, colon, name = principal.partition(":")
    if not colon or not name:
        raise ValueError(f"a principal is written as User:name, not {principal!r}")
    return type, name
