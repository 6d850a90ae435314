"""The response that says that a whole request failed, for any request: what Kafka's `getErrorResponse` makes.

Most responses have an `error_code` of their own. In others every entry has one, and each entry of the request is
answered with it; `_ENTRIES` says which list of the response answers which list of the request. A few versions have no
place for an error at all: there, and where a request asks for everything with null, the only way to tell is to hang up.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import response_type
from ottla.wire.message import Message, WireStruct, like

_ERROR_CODES: Final = ("error_code", "partition_error_code")
_FIRST_FETCH_WITHOUT_ENTRIES: Final = 13
_ITSELF: Final = ""


class Entries(NamedTuple):
    """The list `answers` of a response has one entry for each of the request's list `asked`.

    `copied` says what an entry repeats: field of the response to field of the request, `""` where the request's entry
    is a bare value. `inner` are the entries of an entry, if the error codes are theirs.
    """

    answers: str
    asked: str
    copied: dict[str, str]
    inner: "Entries | None" = None


def _same(*fields: str) -> dict[str, str]:
    return {field: field for field in fields}


_BARE_PARTITIONS: Final = {"partition_index": _ITSELF}
_PARTITIONS: Final = Entries("partitions", "partitions", _same("partition_index"))
_BY_TOPIC: Final = Entries("topics", "topics", _same("name"), _PARTITIONS)
_RESOURCES: Final = _same("resource_type", "resource_name")
_ADDED_TOPICS: Final = Entries(
    "results_by_topic_v3_and_below",
    "v3_and_below_topics",
    _same("name"),
    Entries("results_by_partition", "partitions", _BARE_PARTITIONS),
)
_MARKED_TOPICS: Final = Entries(
    "topics", "topics", _same("name"), Entries("partitions", "partition_indexes", _BARE_PARTITIONS)
)

# Of each list of a response that a version has, the one whose request's list that version has, too, is filled.
_ENTRIES: Final[dict[ApiKey, tuple[Entries, ...]]] = {
    ApiKey.PRODUCE: (
        Entries(
            "responses",
            "topic_data",
            _same("name", "topic_id"),
            Entries("partition_responses", "partition_data", _same("index")),
        ),
    ),
    ApiKey.FETCH: (
        Entries(
            "responses", "topics", _same("topic"), Entries("partitions", "partitions", {"partition_index": "partition"})
        ),
    ),
    ApiKey.LIST_OFFSETS: (_BY_TOPIC,),
    ApiKey.METADATA: (Entries("topics", "topics", _same("name", "topic_id")),),
    ApiKey.OFFSET_COMMIT: (Entries("topics", "topics", _same("name", "topic_id"), _PARTITIONS),),
    ApiKey.OFFSET_FETCH: (
        _MARKED_TOPICS,
        Entries("groups", "groups", _same("group_id")),
    ),
    ApiKey.FIND_COORDINATOR: (Entries("coordinators", "coordinator_keys", {"key": _ITSELF}),),
    ApiKey.DESCRIBE_GROUPS: (Entries("groups", "groups", {"group_id": _ITSELF}),),
    ApiKey.CREATE_TOPICS: (Entries("topics", "topics", _same("name")),),
    ApiKey.DELETE_TOPICS: (
        Entries("responses", "topics", _same("name", "topic_id")),
        Entries("responses", "topic_names", {"name": _ITSELF}),
    ),
    ApiKey.DELETE_RECORDS: (_BY_TOPIC,),
    ApiKey.CREATE_ACLS: (Entries("results", "creations", {}),),
    ApiKey.DELETE_ACLS: (Entries("filter_results", "filters", {}),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Entries("topics", "topics", _same("topic"), Entries("partitions", "partitions", _same("partition"))),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (_ADDED_TOPICS,),
    ApiKey.WRITE_TXN_MARKERS: (Entries("markers", "markers", _same("producer_id"), _MARKED_TOPICS),),
    ApiKey.TXN_OFFSET_COMMIT: (_BY_TOPIC,),
    ApiKey.DESCRIBE_CONFIGS: (Entries("results", "resources", _RESOURCES),),
    ApiKey.ALTER_CONFIGS: (Entries("responses", "resources", _RESOURCES),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Entries("results", "topics", {"topic_name": "name"}, Entries("partitions", "partitions", _BARE_PARTITIONS)),
    ),
    ApiKey.CREATE_PARTITIONS: (Entries("results", "topics", _same("name")),),
    ApiKey.DELETE_GROUPS: (Entries("results", "groups_names", {"group_id": _ITSELF}),),
    ApiKey.ELECT_LEADERS: (
        Entries(
            "replica_election_results",
            "topic_partitions",
            _same("topic"),
            Entries("partition_result", "partitions", {"partition_id": _ITSELF}),
        ),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Entries("responses", "resources", _RESOURCES),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (Entries("responses", "topics", _same("name"), _PARTITIONS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Entries("results", "users", {"user": "name"}),),
    ApiKey.ALTER_CLIENT_QUOTAS: (Entries("entries", "entries", _same("entity")),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        Entries("results", "deletions", {"user": "name"}),
        Entries("results", "upsertions", {"user": "name"}),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (_MARKED_TOPICS,),
    ApiKey.DESCRIBE_TRANSACTIONS: (Entries("transaction_states", "transactional_ids", {"transactional_id": _ITSELF}),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Entries("groups", "group_ids", {"group_id": _ITSELF}),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Entries("topics", "topics", _same("name")),),
}

# What Kafka says where it cannot say anything, if that is not the schema's default.
_UNKNOWN: Final[dict[ApiKey, dict[str, int]]] = {
    ApiKey.PRODUCE: {"base_offset": -1},
    ApiKey.FETCH: {"high_watermark": -1},
    ApiKey.OFFSET_FETCH: {"committed_offset": -1},
    ApiKey.FIND_COORDINATOR: {"node_id": -1, "port": -1},
    ApiKey.DELETE_RECORDS: {"low_watermark": -1},
}


def error_response(request: Message, version: int, error: ErrorCode, words: str | None = None) -> Message | None:
    """None where there is no place for an error: acks=0 asks for no response, old versions may have no field for it.

    `words` are told wherever there is a field for them.
    """
    api_key = request._schema.api_key
    if api_key == ApiKey.PRODUCE and request.acks == 0:  # type: ignore[attr-defined]
        return None
    response = response_type(api_key)()
    writer = _Writer(type(response), version, error, words, _UNKNOWN.get(api_key, {}))  # type: ignore[call-overload]
    writer.write(response)
    if api_key != ApiKey.FETCH or version < _FIRST_FETCH_WITHOUT_ENTRIES:
        for entries in _ENTRIES.get(api_key, ()):  # type: ignore[call-overload]
            for source in _sources(api_key, request):
                writer.answer(response, entries, source)
    return response if writer.has_written else None


def refusal_response(request: Message, version: int, error: ErrorCode, words: str | None = None) -> Message:
    """The same for a request that is refused as a whole; without a place for the error, a response without entries.

    That is what Kafka answers to an ElectLeaders of everything, version 0, that may take no time.
    """
    return error_response(request, version, error, words) or response_type(request._schema.api_key)()


def _sources(api_key: int, request: Message) -> Iterable[Any]:
    """The structs whose lists are answered: the request itself, for AlterReplicaLogDirs each of its directories."""
    return request.dirs if api_key == ApiKey.ALTER_REPLICA_LOG_DIRS else (request,)  # type: ignore[attr-defined]


class _Writer:
    """Puts one error into the structs of one response."""

    def __init__(
        self, response: type[Message], version: int, error: ErrorCode, words: str | None, unknown: dict[str, int]
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
            self.has_written = True  # Also if it is empty: then there is nothing to be told of, as at Kafka.
        copied, inner = tuple(entries.copied.items()), entries.inner
        for asked in all_asked or ():
            answer = like(blank)
            for theirs, ours in copied:
                setattr(answer, theirs, asked if ours is _ITSELF else getattr(asked, ours))
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
                self.has_written = had_written  # Nothing is told of yet.
            self._blanks[entries.answers] = blank
        return self._blanks[entries.answers]
