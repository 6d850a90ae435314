"""SCRAM credentials of users (KIP-554). The password never leaves this process: brokers get it salted and hashed."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.client.admin.asking import Asking, never
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.errors import error_for
from ottla.config.values import Password as Password
from ottla.wire import messages

_FEWEST_ITERATIONS = 4096


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


class ScramCredential(NamedTuple):
    mechanism: ScramMechanism
    iterations: int


class ScramUpsertion(NamedTuple):
    """Gives a user a credential, in place of the one it has for the mechanism."""

    user: str
    mechanism: ScramMechanism
    password: Password
    """`Password("…")`, which shows itself nowhere."""
    iterations: int = _FEWEST_ITERATIONS
    salt: bytes | None = None
    """Random unless given."""


class ScramDeletion(NamedTuple):
    user: str
    mechanism: ScramMechanism


async def describe_user_scram_credentials(
    asking: Asking, users: Iterable[str] | None = None, *, timeout: float | None = None
) -> Results[str, tuple[ScramCredential, ...]]:
    """Which mechanisms each user has; of all users if none are named. Nothing that is secret is reported."""
    name = messages.DescribeUserScramCredentialsRequest.UserName
    wanted = None if users is None else list(users)
    request = messages.DescribeUserScramCredentialsRequest(
        users=None if wanted is None else [name(name=user) for user in wanted]
    )
    response = await asking.any(request, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    return Results("describe_user_scram_credentials", {one.user: _credentials(one) for one in response.results})


def _credentials(answer: Any) -> Outcome[tuple[ScramCredential, ...]]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    return tuple(ScramCredential(ScramMechanism(one.mechanism), one.iterations) for one in answer.credential_infos)


async def alter_user_scram_credentials(
    asking: Asking, changes: Iterable[ScramUpsertion | ScramDeletion], *, timeout: float | None = None
) -> Results[str, None]:
    """Sets and deletes credentials. The changes of one user are made together or not at all."""
    deadline = asking.deadline(timeout)
    wanted = list(changes)

    async def attempt(left: list[str]) -> dict[str, Outcome[None]]:
        request = messages.AlterUserScramCredentialsRequest()
        for change in wanted:
            if isinstance(change, ScramUpsertion):
                request.upsertions.append(_upsertion(asking, change))
            else:
                deletion = messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion
                request.deletions.append(deletion(name=change.user, mechanism=change.mechanism))
        response = await asking.controller(request, deadline)
        return {one.user: failure(one) for one in response.results}

    users = [change.user for change in wanted]
    return await asking.each("alter_user_scram_credentials", users, attempt, deadline, may_pass=never)


def _upsertion(
    asking: Asking, change: ScramUpsertion
) -> messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    from hashlib import pbkdf2_hmac

    from ottla.security.sasl.scram_keys import SALT_ENTROPY_BYTES, salt_from

    salt = change.salt
    if salt is None:
        salt = salt_from(asking.cluster.world.entropy.randbytes(SALT_ENTROPY_BYTES))
    salted = pbkdf2_hmac(_HASHES[change.mechanism], change.password.secret.encode(), salt, change.iterations)
    return messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=change.user, mechanism=change.mechanism, iterations=change.iterations, salt=salt, salted_password=salted
    )
