"""AlterUserScramCredentials: what users prove their names with (KIP-554).

With the first of them a secret goes into the metadata, of which all nodes make salts for users that there are not.
"""

from ottla.base.ids import uuid_text
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.decisions.create_topics import MOST_RECORDS
from ottla.machines.metadata.image.configs_image import CLUSTER_DEFAULT
from ottla.machines.metadata.image.features import has_scram
from ottla.machines.metadata.image.security_image import BY_TYPE, SALT_SECRET, credential_record
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message, like
from ottla.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ConfigRecord,
    RemoveUserScramCredentialRecord,
)

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion

_TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_NO_SCRAM = Refusal(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
_NO_NAME = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_NO_MECHANISM = Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_NOT_THERE = Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_TOO_FEW = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
# What replies are made like: a request may have a hundred thousand entries.
_RESULT = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(error_message=None)


def alter_user_scram_credentials(
    context: ControllerContext, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    """One answer for each user. A user who is named twice is left as it is, also with two mechanisms."""
    outcomes: dict[str, Message | Refusal] = {}
    changes: list[Deletion | Upsertion] = [*request.deletions, *request.upsertions]
    record_count = 0
    for change in changes:
        before = outcomes.get(change.name)
        if before is None:
            outcome = outcomes[change.name] = _check(context, change) or _record(change)
            record_count += not isinstance(outcome, Refusal)
            if record_count > MOST_RECORDS:
                return Decision(_all_refused(changes))
        elif not isinstance(before, Refusal):
            outcomes[change.name] = _TWICE
    reply = AlterUserScramCredentialsResponse()
    records = []
    for user, outcome in outcomes.items():
        result = like(_RESULT)
        result.user = user
        if isinstance(outcome, Refusal):
            result.error_code, result.error_message = outcome
        else:
            records.append(VersionedRecord(outcome, 0))
        reply.results.append(result)
    if records:
        records[:0] = [VersionedRecord(record, 0) for record in salt_secret_records(context)]
    return Decision(reply, records)


def salt_secret_records(context: ControllerContext) -> list[ConfigRecord]:
    """The record of a new secret; none if there is one. It is never replaced: every salt of nobody would change."""
    if SALT_SECRET in context.image.configs.of_cluster() or context.config[SALT_SECRET] is not None:
        return []
    secret = uuid_text(context.new_uuid()) + uuid_text(context.new_uuid())
    type, name = CLUSTER_DEFAULT
    return [ConfigRecord(resource_type=type, resource_name=name, name=SALT_SECRET, value=secret)]


def _all_refused(changes: list[Deletion | Upsertion]) -> AlterUserScramCredentialsResponse:
    """Kafka writes no more records at once, and has no better name for it."""
    reply = AlterUserScramCredentialsResponse()
    for change in changes:
        result = like(_RESULT)
        result.user = change.name
        result.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        reply.results.append(result)
    return reply


def _check(context: ControllerContext, change: Deletion | Upsertion) -> Refusal | None:
    if not has_scram(context.image.features.metadata_version):
        return _NO_SCRAM
    if not change.name:
        return _NO_NAME
    mechanism = BY_TYPE.get(change.mechanism)
    if mechanism is None:
        return _NO_MECHANISM
    if isinstance(change, Deletion):
        if (change.mechanism, change.name) not in context.image.security.scram_credentials:
            return _NOT_THERE
        return None
    if change.iterations < mechanism.min_iterations:
        return _TOO_FEW
    if change.iterations > mechanism.max_iterations:
        return _TOO_MANY
    return None


def _record(change: Deletion | Upsertion) -> Message:
    if isinstance(change, Deletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    return credential_record(
        change.name,
        BY_TYPE[change.mechanism],
        salt=bytes(change.salt),
        salted_password=bytes(change.salted_password),
        iterations=change.iterations,
    )
