"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and tokens whose time is over (KIP-48).

A token is its owner's. Its owner, the client that asked for it and the renewers it was made with may renew and end it.
Times are of the hour (ms since 1970), as tokens show them. Nobody who is not known, or who came with a token, may ask
for any: a broker refuses them before.

Every node keeps every token, so an owner has a bounded number of them (`ottla.delegation.token.max.per.owner`), each
with a bounded list of renewers: POLICY_VIOLATION. Apache Kafka has no such bounds.
"""

from ottla.base.ids import uuid_text
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.image.features import has_delegation_tokens
from ottla.security.sasl.token_hmac import token_hmac
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DelegationTokenRecord,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RemoveDelegationTokenRecord,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ottla.wire.reading import MAX_STRING_BYTES

FIRST_WITH_REQUESTERS = 3
"""Of CreateDelegationToken and DescribeDelegationToken: who asked for a token may be another than its owner."""
_USER = "User"
_NO_TIME = -1
_MOST_AT_ONCE = 1000
_MOST_RENEWER_BYTES = 16_384
"""Of the names of all renewers of a token."""


def create_token(
    context: ControllerContext, request: CreateDelegationTokenRequest, version: int, requester: str, now_ms: int
) -> Decision[CreateDelegationTokenResponse]:
    owner = (
        f"{request.owner_principal_type}:{request.owner_principal_name}" if request.owner_principal_name else requester
    )
    reply = CreateDelegationTokenResponse(
        issue_timestamp_ms=_NO_TIME, expiry_timestamp_ms=_NO_TIME, max_timestamp_ms=_NO_TIME
    )
    reply.principal_type, _, reply.principal_name = owner.partition(":")
    if version >= FIRST_WITH_REQUESTERS:
        reply.token_requester_principal_type, _, reply.token_requester_principal_name = requester.partition(":")
    secret = _secret(context)
    if secret is None:
        reply.error_code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    elif any(renewer.principal_type != _USER for renewer in request.renewers):
        reply.error_code = ErrorCode.INVALID_PRINCIPAL_TYPE
    elif not has_delegation_tokens(context.metadata_version):
        reply.error_code = ErrorCode.UNSUPPORTED_VERSION
    renewers = [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers]
    if any(len(name.encode()) > MAX_STRING_BYTES for name in (owner, *renewers)):
        reply.error_code = ErrorCode.UNKNOWN_SERVER_ERROR  # as Kafka, which fails to write the record
    if secret is None or reply.error_code:
        return Decision(reply)
    over = _in_the_way(context, owner, now_ms)
    if over is None or sum(len(name.encode()) for name in renewers) > _MOST_RENEWER_BYTES:
        reply.error_code = ErrorCode.POLICY_VIOLATION
        return Decision(reply)
    longest_ms = context.config.integer("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        longest_ms = min(longest_ms, request.max_lifetime_ms)
    record = DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=renewers,
        issue_timestamp=now_ms,
        max_timestamp=now_ms + longest_ms,
        expiration_timestamp=min(now_ms + longest_ms, now_ms + _renewed_ms(context)),
        token_id=uuid_text(context.new_uuid()),
    )
    reply.issue_timestamp_ms = record.issue_timestamp
    reply.expiry_timestamp_ms = record.expiration_timestamp
    reply.max_timestamp_ms = record.max_timestamp
    reply.token_id = record.token_id
    reply.hmac = token_hmac(secret, record.token_id)
    return Decision(reply, [*map(_removed, over), VersionedRecord(record, 0)])


def _in_the_way(context: ControllerContext, owner: str, now_ms: int) -> list[DelegationTokenRecord] | None:
    """The expired tokens to remove before an owner can have one more; None if all its places are taken by others.

    Expired tokens are removed from time to time in any case. Until then they take places, or an owner could make as
    many as it liked of those that expire at once.
    """
    tokens, ids = context.image.security.tokens, context.image.security.token_index.of_owner(owner)
    if len(ids) < context.config.integer("ottla.delegation.token.max.per.owner"):
        return []
    return [tokens[id] for id in ids if _expired(tokens[id], now_ms)][:_MOST_AT_ONCE] or None


def renew_token(
    context: ControllerContext, request: RenewDelegationTokenRequest, requester: str, now_ms: int
) -> Decision[RenewDelegationTokenResponse]:
    token = _found(context, bytes(request.hmac))
    if isinstance(token, ErrorCode):
        return Decision(RenewDelegationTokenResponse(error_code=token, expiry_timestamp_ms=_NO_TIME))
    error = _expired(token, now_ms) or _not_theirs(token, requester)
    if error:
        return Decision(RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=_NO_TIME))
    period_ms = _renewed_ms(context)
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = _lasting(token, now_ms + period_ms)
    reply = RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expiration_timestamp)
    return Decision(reply, [VersionedRecord(renewed, 0)])


def expire_token(
    context: ControllerContext, request: ExpireDelegationTokenRequest, requester: str, now_ms: int
) -> Decision[ExpireDelegationTokenResponse]:
    """A negative period ends the token at once."""
    token = _found(context, bytes(request.hmac))
    if isinstance(token, ErrorCode):
        return Decision(ExpireDelegationTokenResponse(error_code=token, expiry_timestamp_ms=_NO_TIME))
    is_at_once = request.expiry_time_period_ms < 0
    error = _not_theirs(token, requester) or (None if is_at_once else _expired(token, now_ms))
    if error:
        return Decision(ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=_NO_TIME))
    if is_at_once:
        return Decision(ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms), [_removed(token)])
    ending = _lasting(token, now_ms + request.expiry_time_period_ms)
    reply = ExpireDelegationTokenResponse(expiry_timestamp_ms=ending.expiration_timestamp)
    return Decision(reply, [VersionedRecord(ending, 0)])


def remove_expired_tokens(context: ControllerContext, now_ms: int) -> Decision[bool]:
    """Some at a time: the reply says whether there are more."""
    over = [token for token in context.image.security.tokens.values() if _expired(token, now_ms)]
    return Decision(len(over) > _MOST_AT_ONCE, [_removed(token) for token in over[:_MOST_AT_ONCE]])


def _secret(context: ControllerContext) -> str | None:
    secret = context.config.secret("delegation.token.secret.key")
    return secret.secret if secret is not None else None


def _renewed_ms(context: ControllerContext) -> int:
    return context.config.integer("delegation.token.expiry.time.ms")


def _found(context: ControllerContext, given: bytes) -> DelegationTokenRecord | ErrorCode:
    secret = _secret(context)
    if secret is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    security = context.image.security
    token_id = security.token_index.find(given, secret)
    return security.tokens[token_id] if token_id is not None else ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _expired(token: DelegationTokenRecord, now_ms: int) -> ErrorCode | None:
    is_over = token.max_timestamp < now_ms or token.expiration_timestamp < now_ms
    return ErrorCode.DELEGATION_TOKEN_EXPIRED if is_over else None


def _not_theirs(token: DelegationTokenRecord, requester: str) -> ErrorCode | None:
    is_theirs = requester in (token.owner, token.requester, *token.renewers)
    return None if is_theirs else ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def _lasting(token: DelegationTokenRecord, until_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=min(token.max_timestamp, until_ms),
        token_id=token.token_id,
    )


def _removed(token: DelegationTokenRecord) -> VersionedRecord:
    record: Message = RemoveDelegationTokenRecord(token_id=token.token_id)
    return VersionedRecord(record, 0)
