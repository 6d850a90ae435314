"""Delegation tokens at a broker (KIP-48): DescribeDelegationToken 1-3 is answered, the other three are passed on.

A client that is not known, or that came with a token itself, may ask for none of it.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.cluster.forwarding import handle_forwarded
from ottla.runtime.channels import ControllerChannel
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.error_responses import refusal_response
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    DelegationTokenRecord,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

NOBODY: Final = "User:ANONYMOUS"
_NO_ONE: Final = ("", "", "")

Described = DescribeDelegationTokenResponse.DescribedDelegationToken


def may_ask(context: RequestContext) -> bool:
    return context.connection.principal != NOBODY and not context.connection.is_token_authenticated


def handle_alter_token(controller: ControllerChannel, context: RequestContext, request: Any, respond: Respond) -> None:
    if may_ask(context):
        handle_forwarded(controller, context, request, respond)
    else:
        respond(refusal_response(request, context.api_version, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))


def handle_describe_delegation_token(
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    context: RequestContext,
    request: DescribeDelegationTokenRequest,
    respond: Respond,
) -> None:
    """An empty list of owners asks for nothing, none at all for the tokens of all."""
    secret = node_settings.effective.secret("delegation.token.secret.key")
    if not may_ask(context):
        respond(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
        return
    if secret is None:
        respond(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
        return
    from ottla.machines.metadata.decisions.alter_tokens import FIRST_WITH_REQUESTERS
    from ottla.security.sasl.token_hmac import token_hmac

    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    tells_requester = context.api_version >= FIRST_WITH_REQUESTERS
    tokens = [
        described(token, lambda token_id: token_hmac(secret.secret, token_id), tells_requester)
        for token in metadata.image.security.tokens.values()
        if owners is None or owners & set(people_of(token))
    ]
    respond(DescribeDelegationTokenResponse(tokens=tokens))


def people_of(token: DelegationTokenRecord) -> tuple[str, ...]:
    """Those who may see and renew a token without any other right."""
    return (token.owner, token.requester, *token.renewers)


def described(token: DelegationTokenRecord, hmac_of: Callable[[str], bytes], tells_requester: bool) -> Described:
    owner_type, _, owner = token.owner.partition(":")
    requester_type, _, requester = token.requester.partition(":") if tells_requester else _NO_ONE
    renewers = [one.partition(":") for one in token.renewers]
    return Described(
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmac_of(token.token_id),
        renewers=[
            DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer(principal_type=type_, principal_name=name)
            for type_, _, name in renewers
        ],
    )
