"""AlterUserScramCredentials: what users prove their names with (KIP-554)."""

from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.decisions.create_topics import MOST_RECORDS
from ottla.machines.metadata.image.features import has_scram
from ottla.machines.metadata.image.scram_credentials import BY_TYPE, credential_record
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message, like
from ottla.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    RemoveUserScramCredentialRecord,
)

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion

_TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


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
        code, message = outcome if isinstance(outcome, Refusal) else (ErrorCode.NONE, None)
        reply.results.append(
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                user=user, error_code=code, error_message=message
            )
        )
        if not isinstance(outcome, Refusal):
            records.append(VersionedRecord(outcome, 0))
    return Decision(reply, records)


def _all_refused(changes: list[Deletion | Upsertion]) -> AlterUserScramCredentialsResponse:
    """Kafka writes no more records at once, and has no better name for it."""
    blank = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None
    )
    reply = AlterUserScramCredentialsResponse()
    for change in changes:
        result = like(blank)
        result.user = change.name
        reply.results.append(result)
    return reply


def _check(context: ControllerContext, change: Deletion | Upsertion) -> Refusal | None:
    if not has_scram(context.image.features.metadata_version):
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not change.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = BY_TYPE.get(change.mechanism)
    if mechanism is None:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Deletion):
        if (change.mechanism, change.name) not in context.image.security.scram_credentials:
            return Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return None
    if change.iterations < mechanism.min_iterations:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > mechanism.max_iterations:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
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
