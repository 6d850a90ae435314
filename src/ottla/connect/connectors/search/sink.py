"""Records to documents of OpenSearch and Elasticsearch, by Confluent's and Aiven's options. At least once.

A record becomes one action of a `_bulk` request. Its document's id is the record's key, and its version the record's
offset: what comes again changes nothing, and the last record of a key is what stays (`bulk` says how). With
`key.ignore` the id is topic, partition and offset: each record has a document, and writes it again when it comes again.

One bulk is under way at a time. Items that the server puts off are sent again, with what is behind them of the same
document; those that it refuses go the way of `behavior.on.malformed.documents`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from time import sleep
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

from ottla.base.ids import TopicPartition
from ottla.config.bounds import OneOf, at_least
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Int, List, Secret, Setting, Text
from ottla.connect.connector import Problem, Refusal, Sink
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.connectors.search.bulk import PATH, Action, Outcome, outcomes, to_send_again
from ottla.connect.connectors.value_texts import json_writer, texts_of
from ottla.connect.connectors.web.client import Limits, Patience, Reply, Request, WebClient, parse_url, patiently
from ottla.connect.connectors.web.options import basic, secret_of, tls_context, tls_rows
from ottla.connect.data.columns import Column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import rows_of
from ottla.connect.data.schema import DECIMAL, TIMESTAMP, Schema, Type
from ottla.connect.errors import ConnectError, DataError, Retriable
from ottla.connect.options import InvalidOption, read_options

_REPLY_BYTES: Final = 64 << 20
_LONGEST_ID: Final = 512
_LONGEST_INDEX: Final = 255
_NO_INDEX: Final = frozenset('\\/*?"<>| ,#:') | {chr(code) for code in (*range(32), 127)}
"""Characters that no index has."""
_TYPES: Final = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "binary",
}


class Rules(NamedTuple):
    """What a configuration says, in one form for both vocabularies."""

    urls: tuple[str, ...]
    authorization: str | None
    key_ignored: bool
    key_ignored_topics: frozenset[str]
    schema_ignored: bool
    schema_ignored_topics: frozenset[str]
    on_null: str
    on_malformed: str
    method: str
    most_records: int
    most_bytes: int
    patience: Patience
    limits: Limits
    tls_prefix: str

    def __repr__(self) -> str:
        return f"Rules({', '.join(self.urls)})"  # without the credentials


class SearchSink(Sink):
    """What both do. A subclass reads its own options."""

    class_name: ClassVar[str]
    _client: WebClient | None = None

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        """Raises `InvalidOption`."""
        raise NotImplementedError

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            cls.rules_of(config)
        except ConnectError as problem:
            return [(setting_of(str(problem), cls.settings, "connection.url"), str(problem))]
        return []

    def start(self) -> None:
        rules = self._rules = self.rules_of(self.config)
        self._client = WebClient(rules.limits, tls_context(self.options(), rules.tls_prefix, self.context.worker))
        # Numbers as numbers: a search server can do nothing with the bytes of a decimal.
        self._json = json_writer("NUMERIC")
        self._known: set[str] = set()
        self._tolerates = self.config.get("errors.tolerance", "none").strip().lower() == "all"
        reply = self._ask("GET", "")
        if not reply.is_good:
            raise ConnectError(f"connection.url: {reply.shown()}")

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        actions: list[Action] = []
        for records in batches:
            made = list(self._actions(records))
            for index in dict.fromkeys(action.into for action in made):
                self._make_sure_of(index, records)
            actions += made
        actions.sort(key=lambda action: action.position)
        for bulk in self._bulks(actions):
            self._write(bulk)

    # Documents.

    def _actions(self, records: Records) -> Iterator[Action]:
        places, positions = self.context.places(records), records.position.to_pylist()
        keys = rows_of(records.key) if isinstance(records.key, Column) else list(records.key.values)
        index = index_of(records.topic)
        problem = wrong_index(index)
        by_key = not (self._rules.key_ignored or records.topic in self._rules.key_ignored_topics)
        kind = "update" if self._rules.method == "upsert" else "index"
        refused: list[Refusal] = []
        for row, document in enumerate(texts_of(records.value, self._json)):
            place = places[row]
            try:
                if problem is not None:
                    raise DataError(problem)
                if isinstance(document, DataError):
                    raise document
                if document is None:
                    if self._is_ignored(keys[row], by_key):
                        continue
                elif not document.startswith(b"{"):
                    raise DataError("its value is no object: a document is one")
                id = document_id(records.key.schema, keys[row]) if by_key else f"{place.topic}+{place[1]}+{place[2]}"
            except DataError as error:
                refused.append(Refusal(positions[row], str(error)))
                continue
            what = "delete" if document is None else kind
            # Versions that updates count by themselves and offsets do not go together.
            version = place.offset if by_key and kind == "index" else None
            yield Action(positions[row], what, index, id, document, version)
        if refused:
            self._refuse(refused)

    def _is_ignored(self, key: Any, by_key: bool) -> bool:
        if self._rules.on_null == "fail":
            raise DataError("it has no value, and behavior.on.null.values is fail")
        # Without a key in the id there is no document that a tombstone could be for.
        return self._rules.on_null == "ignore" or key is None or not by_key

    # Indices.

    def _make_sure_of(self, index: str, records: Records) -> None:
        """That the index is there; made with a mapping for the values' schema unless that is ignored."""
        if index in self._known:
            return
        path = quote(index, safe="")
        reply = self._ask("HEAD", path)
        if reply.status == 404:
            column, topic = records.value, records.topic
            ignored = self._rules.schema_ignored or topic in self._rules.schema_ignored_topics
            about: dict[str, Any] = {}
            if not ignored and isinstance(column, Column) and column.schema.type is Type.STRUCT:
                about = {"mappings": mapping_of(column.schema)}
            reply = self._ask("PUT", path, json.dumps(about).encode(), "application/json")
            if reply.status == 400 and b"resource_already_exists_exception" in reply.body:
                reply = reply._replace(status=200)
        if not reply.is_good:
            raise ConnectError(f"index {index} cannot be made: {reply.shown()}")
        self._known.add(index)

    # Bulks.

    def _bulks(self, actions: Sequence[Action]) -> Iterator[list[Action]]:
        gathered: list[Action] = []
        size = 0
        for action in actions:
            more = len(action.document or b"") + 200
            if gathered and (len(gathered) >= self._rules.most_records or size + more > self._rules.most_bytes):
                yield gathered
                gathered, size = [], 0
            gathered.append(action)
            size += more
        if gathered:
            yield gathered

    def _write(self, actions: Sequence[Action]) -> None:
        """Until each is there or refused. Raises `Retriable` when the tries are over."""
        tries = 0
        while actions:
            body = b"".join(action.lines() for action in actions)
            reply = self._ask("POST", PATH, body, "application/x-ndjson")
            if reply.status in (400, 413):
                self._write_halves(actions, reply)
                return
            if not reply.is_good:
                raise ConnectError(f"connection.url: {reply.shown()}")
            found = outcomes(reply.body, actions, reply.secrets)
            for item in found:
                if item.outcome is Outcome.BROKEN:
                    raise ConnectError(f"connection.url: {reply.url} refuses to write: {item.reason}")
            refused = [
                Refusal(action.position, f"{action.into}/{action.id}: {item.reason}")
                for action, item in zip(actions, found, strict=True)
                if item.outcome is Outcome.REFUSED
            ]
            if refused:
                self._refuse(refused)
            late = next((item.reason for item in found if item.outcome is Outcome.LATER), None)
            if late is None:
                return
            if tries >= self._rules.patience.retries:
                raise Retriable(f"{reply.url} puts off documents again and again: {late}")
            pause_s = self._rules.patience.pause_s(tries, reply)
            tries += 1
            actions = to_send_again(actions, found)
            self.context.log.warning(
                "%s puts off %d documents: %s; next try in %.1f s", reply.url, len(actions), late, pause_s
            )
            sleep(pause_s)

    def _write_halves(self, actions: Sequence[Action], reply: Reply) -> None:
        """A whole request was refused, for its size or for one of its lines."""
        if len(actions) == 1:
            self._refuse([Refusal(actions[0].position, reply.shown())])
            return
        middle = len(actions) // 2
        self._write(actions[:middle])
        self._write(actions[middle:])

    def _refuse(self, refused: Sequence[Refusal]) -> None:
        if self._rules.on_malformed in ("fail", "report") or self._tolerates:
            self.context.refuse(refused)
        elif self._rules.on_malformed == "warn":
            for one in refused:
                self.context.log.warning("connector %s leaves out a record: %s", self.context.connector, one.reason)

    def _ask(self, method: str, path: str, body: bytes | None = None, content_type: str | None = None) -> Reply:
        assert self._client is not None, "the sink is not started"
        headers = {} if content_type is None else {"Content-Type": content_type}
        own = {} if self._rules.authorization is None else {"Authorization": self._rules.authorization}
        requests = [
            Request(method, parse_url(f"{url}/{path}", "connection.url"), body, headers, own)
            for url in self._rules.urls
        ]
        return patiently(self._client, requests, self._rules.patience, self.context.log)


def document_id(schema: Schema | None, key: Any) -> str:
    """Of a key. Raises `DataError`, in Confluent's words."""
    if key is None:
        raise DataError("Key is used as document id and can not be null.")
    if isinstance(key, bool) or not isinstance(key, int | str) or (schema is not None and schema.logical is not None):
        kind = type(key).__name__ if schema is None else schema.type.name
        raise DataError(f"{kind} is not supported as the document id.")
    text = str(key)
    if not text:
        raise DataError("Key is used as document id and can not be empty.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise DataError("Key is used as document id, and has half of a surrogate pair.") from None
    if size > _LONGEST_ID:
        raise DataError(f"Key is used as document id and has {size} bytes, more than {_LONGEST_ID}.")
    return text


def index_of(topic: str) -> str:
    """The index of a topic, as Confluent names it."""
    index = topic.lower()[:_LONGEST_INDEX]
    if index.startswith(("-", "_")):
        index = index[1:]
    return {".": "dot", "..": "dotdot"}.get(index, index)


def wrong_index(index: str) -> str | None:
    """Why there can be no such index: a transform may make topics of what is in records, and the index is a part of
    paths that are asked for."""
    if not index or index in (".", "..") or index[0] in "-_+" or not _NO_INDEX.isdisjoint(index):
        return f"there can be no index {index!r}: change the topic's name with a transform"
    return None


def mapping_of(schema: Schema) -> dict[str, Any]:
    """What an index is told of values of a schema."""
    match schema.type:
        case Type.STRUCT:
            return {"properties": {field.name: mapping_of(field.schema) for field in schema.fields}}
        case Type.ARRAY:
            assert schema.items is not None
            return mapping_of(schema.items)
        case Type.MAP:
            return {"type": "object"}
        case Type.STRING:
            return {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    if schema.logical == DECIMAL:
        return {"type": "double"}
    if schema.logical == TIMESTAMP:
        return {"type": "date", "format": "epoch_millis"}
    return {"type": _TYPES[schema.type]}


def _shared(retries: int = 5) -> tuple[Setting, ...]:
    return (
        List(
            "connection.url", REQUIRED, ANY, HIGH, "The servers: http://HOST:9200, with commas between.", acted_on=True
        ),
        Text("connection.username", None, ANY, MEDIUM, "The user.", acted_on=True),
        Secret("connection.password", MEDIUM, "Their password.", acted_on=True),
        Flag("key.ignore", False, ANY, HIGH, "Whether ids are topic+partition+offset, not keys.", acted_on=True),
        List("topic.key.ignore", (), ANY, LOW, "Topics of which that is so.", acted_on=True),
        Flag("schema.ignore", False, ANY, LOW, "Whether an index is made without a mapping.", acted_on=True),
        List("topic.schema.ignore", (), ANY, LOW, "Topics of which that is so.", acted_on=True),
        Int("batch.size", 2000, at_least(1), MEDIUM, "Documents of a bulk, at most.", acted_on=True),
        Int("max.retries", retries, at_least(0), LOW, "Tries more, before the connector starts anew.", acted_on=True),
        Int("retry.backoff.ms", 100, at_least(0), LOW, "The first pause between tries; they grow.", acted_on=True),
        Int("connection.timeout.ms", 1000, at_least(1), LOW, "How long connecting may take.", acted_on=True),
        Int("read.timeout.ms", 3000, at_least(1), LOW, "Accepted; a bulk has at least 30 s.", acted_on=True),
        Int("max.in.flight.requests", 5, at_least(1), LOW, "Accepted; one bulk is under way at a time."),
        Int("max.buffered.records", 20_000, at_least(1), LOW, "Accepted; what Spark carries is bounded."),
        Int("linger.ms", 1, at_least(0), LOW, "Accepted; what arrived together is written together."),
        Int("flush.timeout.ms", 180_000, at_least(1), LOW, "Accepted; a put ends when all is written."),
    )


def _only(options: Values, **allowed: str) -> None:
    """Options that are understood with one value only."""
    for name, value in allowed.items():
        setting = name.replace("__", ".")
        if str(options[setting]).lower() != value:
            raise InvalidOption(f"{setting}={options[setting]} is not supported here: leave it out")


def _urls(options: Values) -> tuple[str, ...]:
    urls = tuple(url.rstrip("/") for url in options.list("connection.url") if url.strip())
    if not urls:
        raise InvalidOption("connection.url is empty: it must be http://HOST:9200")
    for url in urls:
        if "?" in url:
            raise InvalidOption("connection.url: it has a query, and paths are put behind it")
        parse_url(url, "connection.url")
    return urls


def _rules(options: Values, *, method: str, bulk_bytes: int, tls_prefix: str) -> Rules:
    user, password = options.optional_text("connection.username"), secret_of(options, "connection.password")
    if (user is None) != (password is None):
        raise InvalidOption("connection.username and connection.password: one is missing")
    read_s = max(options.integer("read.timeout.ms") / 1000, 30.0)
    return Rules(
        _urls(options),
        None if user is None else basic(user, password or "", "connection.username"),
        options.flag("key.ignore"),
        frozenset(options.list("topic.key.ignore")),
        options.flag("schema.ignore"),
        frozenset(options.list("topic.schema.ignore")),
        options.text("behavior.on.null.values").lower(),
        options.text("behavior.on.malformed.documents").lower(),
        method,
        options.integer("batch.size"),
        bulk_bytes,
        Patience(options.integer("max.retries"), options.integer("retry.backoff.ms") / 1000),
        Limits(options.integer("connection.timeout.ms") / 1000, read_s, _REPLY_BYTES),
        tls_prefix,
    )


class ElasticsearchSink(SearchSink):
    """io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"""

    class_name = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
    settings: ClassVar[Sequence[Setting]] = (
        *_shared(),
        Text(
            "write.method",
            "INSERT",
            OneOf(("INSERT", "UPSERT"), any_case=True),
            LOW,
            "Whole documents, or fields into documents that are there.",
            acted_on=True,
        ),
        Text(
            "behavior.on.null.values",
            "FAIL",
            OneOf(("IGNORE", "DELETE", "FAIL"), any_case=True),
            LOW,
            "What is done with tombstones.",
            acted_on=True,
        ),
        Text(
            "behavior.on.malformed.documents",
            "FAIL",
            OneOf(("IGNORE", "WARN", "FAIL"), any_case=True),
            LOW,
            "What is done with documents that the server refuses; fail asks errors.tolerance.",
            acted_on=True,
        ),
        Int("bulk.size.bytes", 5 << 20, at_least(1), LOW, "Bytes of a bulk, about, at most.", acted_on=True),
        Flag("compact.map.entries", True, ANY, LOW, "Maps with texts as keys are objects; true only.", acted_on=True),
        Flag("drop.invalid.message", False, ANY, LOW, "False only; see errors.tolerance.", acted_on=True),
        Flag("flush.synchronously", False, ANY, LOW, "Accepted; it always is."),
        Flag("connection.compression", False, ANY, LOW, "Accepted; requests are not compressed."),
        Int("max.connection.idle.time.ms", 60_000, ANY, LOW, "Accepted."),
        Text(
            "elastic.security.protocol",
            "PLAINTEXT",
            OneOf(("PLAINTEXT", "SSL"), any_case=True),
            MEDIUM,
            "Accepted; the address says it.",
        ),
        *tls_rows("elastic.https."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        refuse_unknown(cls.class_name, cls.settings, config, ignored=("confluent.",))
        options = read_options(cls.settings, config)
        _only(options, compact__map__entries="true", drop__invalid__message="false")
        return _rules(
            options,
            method=options.text("write.method").lower(),
            bulk_bytes=options.integer("bulk.size.bytes"),
            tls_prefix="elastic.https.",
        )


class OpensearchSink(SearchSink):
    """io.aiven.kafka.connect.opensearch.OpensearchSinkConnector"""

    class_name = "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector"
    settings: ClassVar[Sequence[Setting]] = (
        *_shared(),
        Text(
            "index.write.method",
            "insert",
            OneOf(("insert", "upsert"), any_case=True),
            LOW,
            "Whole documents, or fields into documents that are there.",
            acted_on=True,
        ),
        Text(
            "key.ignore.id.strategy",
            "topic.partition.offset",
            OneOf(("topic.partition.offset",), any_case=True),
            LOW,
            "What ids are with key.ignore.",
            acted_on=True,
        ),
        Text(
            "behavior.on.null.values",
            "ignore",
            OneOf(("ignore", "delete", "fail"), any_case=True),
            LOW,
            "What is done with tombstones.",
            acted_on=True,
        ),
        Text(
            "behavior.on.malformed.documents",
            "fail",
            OneOf(("ignore", "warn", "fail", "report"), any_case=True),
            LOW,
            "What is done with documents that the server refuses; fail and report ask errors.tolerance.",
            acted_on=True,
        ),
        Text(
            "behavior.on.version.conflict",
            "fail",
            OneOf(("ignore", "warn", "fail", "report"), any_case=True),
            LOW,
            "Accepted; a conflict says that the same record or a newer one is there.",
        ),
        Flag("compact.map.entries", True, ANY, LOW, "Maps with texts as keys are objects; true only.", acted_on=True),
        Flag("drop.invalid.message", False, ANY, LOW, "False only; see errors.tolerance.", acted_on=True),
        *tls_rows("connection."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        refuse_unknown(cls.class_name, cls.settings, config)
        options = read_options(cls.settings, config)
        _only(options, compact__map__entries="true", drop__invalid__message="false")
        method = options.text("index.write.method").lower()
        return _rules(options, method=method, bulk_bytes=5 << 20, tls_prefix="connection.")
