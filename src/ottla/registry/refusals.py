"""What a registry refuses a request with: an HTTP status, Confluent's code, and its message word for word.

Clients look at the codes, and some at the words. One function for each code.
"""

from collections.abc import Iterable

from ottla.base.errors import OttlaError


class Refused(OttlaError):
    """A request that is answered with an error, on purpose."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


# 404


def subject_not_found(subject: str) -> Refused:
    return Refused(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> Refused:
    return Refused(404, 40402, f"Version {version} not found.")


def schema_not_found(what: int | str | None = None) -> Refused:
    return Refused(404, 40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_soft_deleted(subject: str) -> Refused:
    return Refused(404, 40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> Refused:
    return Refused(404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(
        404, 40406, f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(
        404, 40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def compatibility_not_configured(subject: str) -> Refused:
    return Refused(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_configured(subject: str) -> Refused:
    return Refused(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


# 409


def incompatible(subject: str, messages: Iterable[str]) -> Refused:
    return Refused(
        409,
        409,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(messages)}]",
    )


# 422


def invalid_schema(reason: str) -> Refused:
    return Refused(422, 42201, reason)


def invalid_version(version: str | int) -> Refused:
    return Refused(
        422,
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_compatibility() -> Refused:
    return Refused(
        422,
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode(message: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.") -> Refused:
    return Refused(422, 42204, message)


def not_permitted(message: str) -> Refused:
    return Refused(422, 42205, message)


def reference_exists(subject: str, version: int) -> Refused:
    named = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return Refused(422, 42206, f"One or more references exist to the schema {named}.")


def invalid_subject(subject: str) -> Refused:
    return Refused(422, 42208, f"The specified subject '{subject}' is not a valid.")


def schema_too_large() -> Refused:
    return Refused(422, 42209, "Register operation failed because schema is too large")


def invalid_rules(message: str) -> Refused:
    return Refused(422, 42210, message)


def context_not_empty(context: str) -> Refused:
    return Refused(422, 42211, f"The specified context '{context}' is not empty.")


# 500


def store_failed(message: str) -> Refused:
    return Refused(500, 50001, message)


def timed_out(message: str) -> Refused:
    return Refused(500, 50002, message)


def forwarding_failed(message: str) -> Refused:
    return Refused(500, 50003, message)


def unknown_leader(message: str = "Leader not known.") -> Refused:
    return Refused(500, 50004, message)


# Of the front, and of security


def not_authenticated() -> Refused:
    return Refused(401, 40101, "Unauthorized")


def forbidden(message: str = "User is denied operation on this resource.") -> Refused:
    return Refused(403, 40301, message)


def not_found() -> Refused:
    return Refused(404, 404, "HTTP 404 Not Found")


def not_here_yet(what: str) -> Refused:
    return Refused(404, 404, f"This registry does not serve {what} yet")


def bad_request(message: str) -> Refused:
    return Refused(400, 400, message)


def missing_body() -> Refused:
    return Refused(422, 422, "The request body must not be null")
