"""DescribeUserScramCredentials 0: which users have SCRAM credentials (KIP-554).

Credentials are kept in the metadata log, and shown without what they consist of.
"""

from collections import Counter
from typing import Final

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.security_image import BY_TYPE
from ottla.wire.errors import ErrorCode, error_with_message
from ottla.wire.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult

_TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_NOT_FOUND: Final = "Attempt to describe a user credential that does not exist: "


def described_users(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """No names are all names."""
    times = Counter(user.name for user in request.users or ())
    names = times or sorted({user for _, user in image.security.scram_credentials})
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[
            _refused(name, ErrorCode.DUPLICATE_RESOURCE, _TWICE) if times[name] > 1 else _described(image, name)
            for name in names
        ],
    )


def _described(image: MetadataImage, user: str) -> Result:
    credentials = image.security.scram_credentials
    found = [credentials[type, user] for type in BY_TYPE if (type, user) in credentials]
    if not found:
        return _refused(user, ErrorCode.RESOURCE_NOT_FOUND, _NOT_FOUND)
    infos = [
        DescribeUserScramCredentialsResponse.CredentialInfo(
            mechanism=credential.mechanism, iterations=credential.iterations
        )
        for credential in found
    ]
    return Result(user=user, error_message=None, credential_infos=infos)


def _refused(user: str, error: ErrorCode, reason: str) -> Result:
    code, message = error_with_message(error, reason + user)
    return Result(user=user, error_code=code, error_message=message)
