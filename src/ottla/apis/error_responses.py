"""The response that says that a whole request failed, for any request: what Kafka's `getErrorResponse` makes.

Most responses have an `error_code` of their own. In others every entry has one, and each entry of the request is
answered with it; the row of the API says which list of the response answers which list of the request. A few versions
have no place for an error at all: there, and where a request asks for everything with null, the only way to tell is to
hang up.
"""

from collections.abc import Mapping
from typing import Any, Final

from ottla.apis.description import ITSELF, Entries, ErrorReply
from ottla.apis.table import APIS
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import response_type
from ottla.wire.message import Message, WireStruct, like

_ERROR_CODES: Final = ("error_code", "partition_error_code")
_NO_ROW: Final = ErrorReply()


def error_response(request: Message, version: int, error: ErrorCode, words: str | None = None) -> Message | None:
    """None where there is no place for an error: acks=0 asks for no response, old versions may have no field for it.

    `words` are reported wherever there is a field for them.
    """
    api_key = request._schema.api_key
    if api_key == ApiKey.PRODUCE and request.acks == 0:  # type: ignore[attr-defined]
        return None
    row = APIS.get(api_key)
    errors = row.errors if row is not None else _NO_ROW
    response = response_type(api_key)()
    writer = _Writer(type(response), version, error, words, errors.unknown)
    writer.write(response)
    if errors.whole_since is None or version < errors.whole_since:
        for entries in errors.entries:
            for source in (request,) if errors.inside is None else getattr(request, errors.inside):
                writer.answer(response, entries, source)
    return response if writer.has_written else None


def refusal_response(request: Message, version: int, error: ErrorCode, words: str | None = None) -> Message:
    """The same for a request that is refused as a whole; without a place for the error, a response without entries.

    That is what Kafka answers to an ElectLeaders of everything, version 0, that may take no time.
    """
    return error_response(request, version, error, words) or response_type(request._schema.api_key)()


class _Writer:
    """Puts one error into the structs of one response."""

    def __init__(
        self, response: type[Message], version: int, error: ErrorCode, words: str | None, unknown: Mapping[str, int]
    ) -> None:
        self._words = words
        self._response = response
        self._version = version
        self._error = error
        self._unknown = unknown
        self.has_written = False  # or found a place for it
        self._blanks: dict[str, WireStruct | None] = {}

    def write(self, struct: WireStruct) -> None:
        for field in struct._struct.fields:
            if self._version not in field.versions:
                continue
            if field.attribute in _ERROR_CODES:
                setattr(struct, field.attribute, self._error)
                self.has_written = True
            elif field.attribute == "error_message" and self._words is not None:
                struct.error_message = self._words  # type: ignore[attr-defined]
            elif field.attribute in self._unknown:
                setattr(struct, field.attribute, self._unknown[field.attribute])

    def answer(self, struct: WireStruct, entries: Entries, source: Any) -> None:
        """Adds to a list of `struct` one entry for each of a list of `source`. There may be a hundred thousand."""
        blank = self._blank(struct, entries)
        if blank is None:
            return
        answers: list[Any] = getattr(struct, entries.answers)
        all_asked = getattr(source, entries.asked)
        if all_asked is not None:
            self.has_written = True  # Also if it is empty: then there is nothing to be reported, as at Kafka.
        copied, inner = tuple(entries.copied.items()), entries.inner
        for asked in all_asked or ():
            answer = like(blank)
            for theirs, ours in copied:
                setattr(answer, theirs, asked if ours is ITSELF else getattr(asked, ours))
            if inner is not None:
                setattr(answer, inner.answers, [])
                self.answer(answer, inner, asked)
            answers.append(answer)

    def _blank(self, struct: WireStruct, entries: Entries) -> WireStruct | None:
        """What the list's entries are made like; None where this version has no such list."""
        if entries.answers not in self._blanks:
            field = next(field for field in struct._struct.fields if field.attribute == entries.answers)
            blank = getattr(self._response, field.type)() if self._version in field.versions else None
            if blank is not None and entries.inner is None:
                had_written = self.has_written
                self.write(blank)
                self.has_written = had_written  # Nothing is reported yet.
            self._blanks[entries.answers] = blank
        return self._blanks[entries.answers]
