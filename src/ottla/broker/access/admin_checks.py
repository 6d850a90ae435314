"""Changes of a broker's own settings, and delegation tokens as brokers show them (KIP-48, KIP-373)."""

from typing import Final

from ottla.broker.admin.delegation_tokens import people_of
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.serving.access.rights import Question, Rights
from ottla.serving.access.shared_checks import check_resources
from ottla.wire.acls import AclOperation, AclResource

_OF_THIS_NODE: Final = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


def alter_configs(rights: Rights, question: Question) -> None:
    """The controller looks after topics, groups and metrics. Loggers are this node's own, and it reads the files that
    settings of brokers name: so the right to change these is looked at before that.
    """
    check_resources(rights, question, AclOperation.ALTER_CONFIGS, "responses", only=_OF_THIS_NODE)


def describe_tokens(rights: Rights, question: Question) -> None:
    """Tokens of others are shown with DESCRIBE on the token, or DESCRIBE_TOKENS on its owner.

    The tokens are not in the request, so the handler asks as it goes through them.
    """
    assert question.context is not None
    question.context.may_use = lambda token_id: _may_see(rights, token_id)
    question.pass_on()


def _may_see(rights: Rights, token_id: str) -> bool:
    token = rights.image.security.tokens.get(token_id)
    return token is not None and (
        rights.principal in people_of(token)
        or rights.allow(AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, token_id, tell=False)
        or rights.allow(AclOperation.DESCRIBE_TOKENS, AclResource.USER, token.owner, tell=False)
    )
