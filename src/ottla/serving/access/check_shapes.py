"""Checks that many APIs share: of the whole request, and of its entries one by one.

Entries that are refused are taken out of the request. The rest goes to the handler, and the refused ones are added
to its reply. If none is left there is nothing to ask the handler.
"""

from collections.abc import Callable
from typing import Any

from ottla.apis.description import Answer, ServedApi, load
from ottla.apis.error_responses import refusal_response
from ottla.runtime.request import Respond
from ottla.serving.access.rights import Check, Question, Rights
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like


def open_to_all(_rights: Rights, question: Question) -> None:
    """Nothing is needed, or what is needed is looked at by the controller that the request is passed on to."""
    question.pass_on()


def on_cluster(*operations: AclOperation, words: str | None = None) -> Check:
    """One of these operations on the cluster, or the whole request is refused: with these words, or what is missing."""

    def check(rights: Rights, question: Question) -> None:
        *others, last = operations
        if any(rights.allow_cluster(one, tell=False) for one in others) or rights.allow_cluster(last):
            question.pass_on()
        else:
            refusal = rights.missing(last) if words is None else words or None
            question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)

    return check


def find_check(row: ServedApi, answer: Answer) -> Check:
    """The check that stands before `answer`, which is one of the row's. What no check is known for is refused."""
    if answer.check is not None:
        check: Check = load(answer.check)
        return check
    needs, or_instead = row.access.needs, row.access.or_instead
    if not needs:
        return open_to_all
    rights = needs if or_instead is None else (or_instead, *needs)
    if len(needs) == 1 and all(right.resource is AclResource.CLUSTER for right in rights):
        return on_cluster(*(right.operation for right in rights), words=row.access.words)
    return refuse_all


def refuse_all(_rights: Rights, question: Question) -> None:
    question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def on_group(operation: AclOperation, field: str = "group_id") -> Check:
    """The operation on the one group of the request."""

    def check(rights: Rights, question: Question) -> None:
        if rights.allow_group(operation, getattr(question.request, field)):
            question.pass_on()
        else:
            question.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    return check


def each(
    asked: str, answers: str, is_allowed: Callable[[Rights, Any], bool], error: ErrorCode, words: str | None = None
) -> Check:
    """Each entry of the list `asked` is checked; the list `answers` of the reply has the refused ones too."""

    def check(rights: Rights, question: Question) -> None:
        check_each(question, asked, answers, lambda entry: is_allowed(rights, entry), error, words)

    return check


def each_topic(
    operation: AclOperation,
    asked: str = "topics",
    answers: str = "topics",
    name: Callable[[Any], str] | None = None,
    words: str | None = None,
) -> Check:
    """The operation on each topic."""
    name_of = name or (lambda entry: entry.name)
    return each(
        asked,
        answers,
        lambda rights, entry: rights.allow_topic(operation, name_of(entry)),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        words,
    )


def check_each(
    question: Question,
    asked: str,
    answers: str,
    is_allowed: Callable[[Any], bool],
    error: ErrorCode,
    words: str | None = None,
) -> None:
    allowed, refused = divide(getattr(question.request, asked) or (), is_allowed)
    if not refused:
        question.pass_on()
        return
    refusal = refusal_response(with_entries(question.request, asked, refused), question.version, error, words)
    if not allowed:
        question.respond(refusal)
        return
    rest = with_entries(question.request, asked, allowed)
    question.proceed(rest, joined(question.respond, answers, getattr(refusal, answers)))


def divide(entries: Any, is_allowed: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    allowed: list[Any] = []
    refused: list[Any] = []
    for entry in entries:
        (allowed if is_allowed(entry) else refused).append(entry)
    return allowed, refused


def with_entries(request: Any, asked: str, entries: list[Any]) -> Any:
    """The request with other entries in its list."""
    changed = like(request)
    setattr(changed, asked, entries)
    return changed


def joined(respond: Respond, answers: str, refused: list[Any]) -> Respond:
    """Gives the reply out with the refused entries at the end of a list of it."""

    def reply(response: Any) -> None:
        if response is not None:
            setattr(response, answers, [*getattr(response, answers), *refused])
        respond(response)

    return reply
