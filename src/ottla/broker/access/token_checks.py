"""Who may ask after delegation tokens of others (KIP-48, KIP-373). Everybody may for themselves."""

from typing import Any

from ottla.broker.access.rights import Question, Rights
from ottla.broker.admin.delegation_tokens import people_of
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeDelegationTokenResponse


def create_token(rights: Rights, question: Question) -> None:
    """For another owner CREATE_TOKENS on that user is needed."""
    request = question.request
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    is_for_another = bool(request.owner_principal_name) and owner != rights.principal
    if is_for_another and not rights.allow(AclOperation.CREATE_TOKENS, AclResource.USER, owner):
        question.refuse(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    else:
        question.pass_on()


def describe_tokens(rights: Rights, question: Question) -> None:
    """Tokens of others are shown with DESCRIBE on the token, or DESCRIBE_TOKENS on its owner."""

    def respond(reply: Any) -> None:
        assert isinstance(reply, DescribeDelegationTokenResponse)
        reply.tokens = [token for token in reply.tokens if _may_see(rights, token)]
        question.respond(reply)

    question.go_on(question.request, respond)


def _may_see(rights: Rights, token: Any) -> bool:
    owner = f"{token.principal_type}:{token.principal_name}"
    known = rights.image.security.tokens.get(token.token_id)  # who asked for it is not in every version of the reply
    return (
        (known is not None and rights.principal in people_of(known))
        or rights.allow(AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, token.token_id, tell=False)
        or rights.allow(AclOperation.DESCRIBE_TOKENS, AclResource.USER, owner, tell=False)
    )
