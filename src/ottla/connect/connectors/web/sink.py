"""Records to requests: our own HTTP sink, and Confluent's and Aiven's by their names. At least once.

Theory of operation. A put is cut into requests: the records of one partition, in order, up to a number of records and
of bytes. A request is sent until it is answered. What the status says:

    2xx                                      the records are there
    408, 425, 429, 5xx, or no reply          later: after a pause, the server's own (Retry-After) if it names one
    401, 403, 404, 405, 407                  the address or the credentials are wrong, not a record: the connector fails
    404, 410 to a DELETE                     what its key names is gone, as it should be
    any other                                refused. Of several records each half is sent for itself, until those are
                                             found that are refused alone: they go the way of `errors.tolerance`

Each request has an id, from topic, partition and offset, in a header. With one record a request, a server that
remembers ids sees through what is sent again. With several, a start may cut requests elsewhere than the one before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple
from urllib.parse import quote

from ottla.base.ids import TopicPartition
from ottla.config.bounds import Between, OneOf, at_least
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Int, List, Secret, Setting, Text
from ottla.connect.connector import Place, Problem, Refusal, Sink
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.connectors.value_texts import json_writer, texts_of
from ottla.connect.connectors.web.client import Limits, Patience, Request, WebClient, parse_url, patiently
from ottla.connect.connectors.web.options import (
    basic,
    credentials,
    header,
    headers_of,
    secret_of,
    tls_context,
    tls_rows,
)
from ottla.connect.data.columns import AnyColumn, Column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import rows_of
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.java_text import java_text
from ottla.connect.options import InvalidOption, read_options

_REPLY_BYTES: Final = 64 << 10
_NOT_ABOUT_RECORDS: Final = {
    401: "the credentials are refused",
    403: "the credentials are refused",
    404: "nothing is there",
    405: "the method is not allowed there",
    407: "a proxy asks for credentials",
}
_GONE: Final = (404, 410)
"""To a DELETE: what it asks for is so. A DELETE that comes again is answered like that."""
_JSON: Final = "application/json"
_ID_HEADER: Final = "Idempotency-Key"


class Layout(NamedTuple):
    """How the records of a request become its body. Without a separator a request has one record."""

    prefix: bytes = b""
    separator: bytes | None = None
    suffix: bytes = b""

    def body(self, texts: Sequence[bytes]) -> bytes:
        return texts[0] if self.separator is None else self.prefix + self.separator.join(texts) + self.suffix


SINGLE: Final = Layout()
ARRAY: Final = Layout(b"[", b",", b"]")
LINES: Final = Layout(b"", b"\n", b"\n")


class Rules(NamedTuple):
    """What a configuration says, in one form for all vocabularies."""

    url: str
    url_setting: str
    method: str
    headers: Mapping[str, str]
    """Credentials among them."""
    content_type: str
    text: str
    """`json`: of any value. `text`: strings and bytes as they are, others as JSON. `java`: as `toString` says."""
    layout: Layout
    most_records: int
    limits: Limits
    patience: Patience
    on_null: str
    """`ignore`, `fail`, `delete` (a DELETE request), `send` (null, or nothing)."""
    id_header: str | None
    tls_prefix: str
    on_error: str = "fail"
    """`ignore` and `log`: a refused record is left out without asking `errors.tolerance`."""
    most_bytes: int = 1 << 20
    decimals: str = "BASE64"

    def __repr__(self) -> str:
        return f"Rules({self.method} {self.url.partition('?')[0]})"  # headers have credentials


class _Text(NamedTuple):
    """A record on its way."""

    position: int
    place: Place
    url: str
    content: bytes | None
    """None: what its key names is deleted."""


class WebSink(Sink):
    """What all three do. A subclass reads its own options."""

    class_name: ClassVar[str]
    url_setting: ClassVar[str]
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
            return [(setting_of(str(problem), cls.settings, cls.url_setting), str(problem))]
        return []

    def start(self) -> None:
        rules = self._rules = self.rules_of(self.config)
        tls = tls_context(self.options(), rules.tls_prefix, self.context.worker)
        self._client = WebClient(rules.limits, tls)
        self._json = json_writer(rules.decimals)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        found: dict[tuple[str, int], list[_Text]] = {}
        for records in batches:
            for one in self._texts(records):
                found.setdefault((one.place.topic, one.place.partition), []).append(one)
        for of_partition in found.values():
            of_partition.sort(key=lambda one: one.position)  # whatever batches its records came in
            for texts in self._requests(of_partition):
                self._send(texts)

    # Texts.

    def _texts(self, records: Records) -> Iterator[_Text]:
        """The text of each value, and where it goes. A record that has none is refused."""
        places, positions = self.context.places(records), records.position.to_pylist()
        keys = self._keys(records)
        refused: list[Refusal] = []
        for row, content in enumerate(texts_of(records.value, self._bytes_of)):
            position = positions[row]
            try:
                if isinstance(content, DataError):
                    raise content
                if content is None and self._rules.on_null == "fail":
                    raise DataError("it has no value")
                url = _url_for(self._rules, records.topic, keys[row])
            except DataError as error:
                refused.append(Refusal(position, str(error)))
                continue
            if content is None and self._rules.on_null == "send":
                content = b"null" if self._rules.text == "json" else b""
            if content is not None or self._rules.on_null == "delete":
                yield _Text(position, places[row], url, content)
        if refused:
            self.context.refuse(refused)

    def _keys(self, records: Records) -> list[str | None]:
        """The text of each key, if the address asks for it."""
        if "${key}" not in self._rules.url:
            return [None] * len(records)
        values = rows_of(records.key) if isinstance(records.key, Column) else list(records.key.values)
        return [None if one is None else java_text(records.key.schema, one) for one in values]

    def _bytes_of(self, column: AnyColumn) -> Sequence[bytes | None]:
        if self._rules.text == "json":
            return self._json(column)
        values = rows_of(column) if isinstance(column, Column) else list(column.values)
        if self._rules.text == "java":
            return [None if one is None else java_text(column.schema, one).encode() for one in values]
        if all(one is None or isinstance(one, str | bytes) for one in values):
            return [one.encode() if isinstance(one, str) else one for one in values]
        return self._json(column)

    # Requests.

    def _requests(self, texts: Sequence[_Text]) -> Iterator[list[_Text]]:
        rules = self._rules
        most = 1 if rules.layout.separator is None else rules.most_records
        gathered: list[_Text] = []
        size = 0
        for one in texts:
            more = len(one.content or b"")
            ends = len(gathered) >= most or size + more > rules.most_bytes or one.content is None
            if gathered and (ends or gathered[0].url != one.url or gathered[0].content is None):
                yield gathered
                gathered, size = [], 0
            gathered.append(one)
            size += more
        if gathered:
            yield gathered

    def _send(self, texts: Sequence[_Text]) -> None:
        rules = self._rules
        assert self._client is not None, "the sink is not started"
        contents = [one.content for one in texts if one.content is not None]
        headers = {"Content-Type": rules.content_type} if contents else {}
        if rules.id_header is not None:
            headers[rules.id_header] = _id_of(texts)
        request = Request(
            rules.method if contents else "DELETE",
            parse_url(texts[0].url, rules.url_setting),
            rules.layout.body(contents) if contents else None,
            headers,
            rules.headers,
            cuts_reply=True,
        )
        reply = patiently(self._client, [request], rules.patience, self.context.log)
        if reply.is_good or (not contents and reply.status in _GONE):
            return
        if (why := _NOT_ABOUT_RECORDS.get(reply.status)) is not None:
            raise ConnectError(f"{rules.url_setting}: {why}: {reply.shown()}")
        if len(texts) > 1:
            middle = len(texts) // 2
            self._send(texts[:middle])
            self._send(texts[middle:])
            return
        self._refuse(texts[0], reply.shown())

    def _refuse(self, text: _Text, why: str) -> None:
        if self._rules.on_error == "fail":
            self.context.refuse([Refusal(text.position, why)])
        elif self._rules.on_error == "log":
            self.context.log.error("connector %s: %s: %s", self.context.connector, text.place, why)


def _id_of(texts: Sequence[_Text]) -> str:
    """`orders-0-17`, and of several `orders-0-17-20`."""
    first, last = texts[0].place, texts[-1].place
    made = f"{quote(first.topic)}-{first.partition}-{first.offset}"
    return made if len(texts) == 1 else f"{made}-{last.offset}"


def _url_for(rules: Rules, topic: str, key: str | None) -> str:
    url = rules.url.replace("${topic}", quote(topic, safe=""))
    if "${key}" in url:
        if not key:
            raise DataError(f"{rules.url_setting} has ${{key}}, and the record has no key")
        url = url.replace("${key}", quote(key, safe=""))
    if url != rules.url and _climbs(url) and not _climbs(rules.url):
        raise DataError(f"{rules.url_setting} would have a path with . or .. in it, which leads elsewhere")
    return url


def _climbs(url: str) -> bool:
    return not {".", ".."}.isdisjoint(url.partition("?")[0].split("/"))


def _checked_url(text: str, setting: str) -> str:
    """Raises `InvalidOption` for an address that no record can have."""
    example = text.replace("${topic}", "topic").replace("${key}", "key")
    if "${" in example:
        raise InvalidOption(f"{setting}: only ${{topic}} and ${{key}} are put in here")
    host = text.partition("://")[2].partition("/")[0]
    if "${" in host:
        raise InvalidOption(f"{setting}: records do not choose the host; put ${{…}} behind it")
    parse_url(example, setting)
    return text


def _tries(options: Values, retries: str, pause_ms: str) -> Patience:
    return Patience(options.integer(retries), options.integer(pause_ms) / 1000)


class HttpSink(WebSink):
    """ottla.connect.HttpSinkConnector"""

    class_name = "ottla.connect.HttpSinkConnector"
    url_setting = "http.url"
    settings = (
        Text("http.url", REQUIRED, ANY, HIGH, "The address, with ${topic} and ${key} for the record's.", acted_on=True),
        Text("http.method", "POST", OneOf(("POST", "PUT", "PATCH"), any_case=True), HIGH, "The method.", acted_on=True),
        Text(
            "http.batch",
            "single",
            OneOf(("single", "array", "lines")),
            HIGH,
            "What a request has: one record, a JSON array of them, or one in each line.",
            acted_on=True,
        ),
        Int("http.batch.records", 500, at_least(1), MEDIUM, "Records of a request, at most.", acted_on=True),
        Int("http.batch.bytes", 1 << 20, at_least(1), MEDIUM, "Bytes of a request, about, at most.", acted_on=True),
        Text(
            "http.body",
            "json",
            OneOf(("json", "text")),
            MEDIUM,
            "A value as JSON; or strings and bytes as they are (text).",
            acted_on=True,
        ),
        Text("http.content.type", None, ANY, LOW, "The Content-Type, if not that of JSON or lines.", acted_on=True),
        Secret("http.headers", MEDIUM, "More headers: NAME:VALUE, with | between.", acted_on=True),
        Text("http.id.header", _ID_HEADER, ANY, MEDIUM, "The header with a request's id; empty: none.", acted_on=True),
        Text(
            "http.auth",
            "none",
            OneOf(("none", "basic", "bearer")),
            HIGH,
            "Credentials: a user with a password (basic), or a token (bearer).",
            acted_on=True,
        ),
        Text("http.auth.user", None, ANY, HIGH, "The user.", acted_on=True),
        Secret("http.auth.password", HIGH, "Their password.", acted_on=True),
        Secret("http.auth.token", HIGH, "The token.", acted_on=True),
        Text(
            "behavior.on.null.values",
            "ignore",
            OneOf(("ignore", "fail", "delete", "send")),
            MEDIUM,
            "A tombstone is left out, refused, sent as a DELETE, or sent as null.",
            acted_on=True,
        ),
        Int("http.connect.timeout.ms", 10_000, at_least(1), LOW, "How long connecting may take.", acted_on=True),
        Int("http.timeout.ms", 30_000, at_least(1), LOW, "How long a request and its reply may take.", acted_on=True),
        Int("retries", 5, at_least(0), LOW, "Tries more, before the connector starts anew.", acted_on=True),
        Int("retry.backoff.ms", 500, at_least(0), LOW, "The first pause between tries; they grow.", acted_on=True),
        *tls_rows("http."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        refuse_unknown(cls.class_name, cls.settings, config)
        options = read_options(cls.settings, config)
        batch = options.text("http.batch")
        headers = headers_of((secret_of(options, "http.headers") or "").split("|"), "http.headers")
        headers |= credentials(options)
        lines = "application/x-ndjson" if batch == "lines" else _JSON
        return Rules(
            _checked_url(options.text("http.url"), "http.url"),
            cls.url_setting,
            options.text("http.method").upper(),
            headers,
            header("Content-Type", options.optional_text("http.content.type") or lines, "http.content.type")[1],
            options.text("http.body"),
            {"single": SINGLE, "array": ARRAY, "lines": LINES}[batch],
            options.integer("http.batch.records"),
            _limits(options, "http.connect.timeout.ms", "http.timeout.ms"),
            _tries(options, "retries", "retry.backoff.ms"),
            _on_null(options, cls.url_setting),
            _id_header(options.text("http.id.header").strip()),
            "http.",
            most_bytes=options.integer("http.batch.bytes"),
        )


def _id_header(name: str) -> str | None:
    return header(name, "", "http.id.header")[0] if name else None


def _limits(options: Values, connecting: str, asking: str) -> Limits:
    return Limits(options.integer(connecting) / 1000, options.integer(asking) / 1000, _REPLY_BYTES)


def _on_null(options: Values, url: str) -> str:
    said = options.text("behavior.on.null.values").lower()
    if said == "delete" and "${key}" not in options.text(url):
        raise InvalidOption(f"behavior.on.null.values=delete: a DELETE needs ${{key}} in {url}")
    return said


class ConfluentHttpSink(WebSink):
    """io.confluent.connect.http.HttpSinkConnector"""

    class_name = "io.confluent.connect.http.HttpSinkConnector"
    url_setting = "http.api.url"
    settings: ClassVar[Sequence[Setting]] = (
        Text("http.api.url", REQUIRED, ANY, HIGH, "The address, with ${topic} and ${key}.", acted_on=True),
        Text(
            "request.method", "POST", OneOf(("POST", "PUT", "PATCH"), any_case=True), HIGH, "The method.", acted_on=True
        ),
        Secret("headers", HIGH, "Headers: NAME:VALUE, with header.separator between.", acted_on=True),
        Text("header.separator", "|", ANY, HIGH, "What is between headers.", acted_on=True),
        Text("auth.type", "NONE", OneOf(("NONE", "BASIC"), any_case=True), HIGH, "Credentials.", acted_on=True),
        Text("connection.user", None, ANY, HIGH, "The user.", acted_on=True),
        Secret("connection.password", HIGH, "Their password.", acted_on=True),
        Text(
            "request.body.format",
            "string",
            OneOf(("string", "json"), any_case=True),
            MEDIUM,
            "A value as Java's text, or as JSON.",
            acted_on=True,
        ),
        Int("batch.max.size", 1, at_least(1), HIGH, "Records of a request.", acted_on=True),
        Flag("batch.json.as.array", False, ANY, HIGH, "Whether several are a JSON array.", acted_on=True),
        Text("batch.prefix", "", ANY, HIGH, "What is before them.", acted_on=True),
        Text("batch.suffix", "", ANY, HIGH, "What is behind them.", acted_on=True),
        Text("batch.separator", ",", ANY, HIGH, "What is between them.", acted_on=True),
        Text(
            "behavior.on.null.values",
            "ignore",
            OneOf(("ignore", "delete", "log", "fail"), any_case=True),
            LOW,
            "What is done with tombstones.",
            acted_on=True,
        ),
        Text(
            "behavior.on.error",
            "fail",
            OneOf(("ignore", "log", "fail"), any_case=True),
            LOW,
            "What is done with records that the server refuses; fail asks errors.tolerance.",
            acted_on=True,
        ),
        Int("max.retries", 10, at_least(0), MEDIUM, "Tries more, before the connector starts anew.", acted_on=True),
        Int("retry.backoff.ms", 3000, at_least(0), MEDIUM, "The first pause; they grow.", acted_on=True),
        Text("retry.on.status.codes", "400-", ANY, MEDIUM, "Accepted; 408, 425, 429 and 5xx are tried again."),
        Int("http.connect.timeout.ms", 30_000, at_least(1), LOW, "How long connecting may take.", acted_on=True),
        Int("http.request.timeout.ms", 30_000, at_least(1), LOW, "How long a request may take.", acted_on=True),
        *tls_rows("https."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        refuse_unknown(cls.class_name, cls.settings, config, ignored=("confluent.",))
        options = read_options(cls.settings, config)
        headers = headers_of((secret_of(options, "headers") or "").split(options.text("header.separator")), "headers")
        if options.text("auth.type").upper() == "BASIC":
            user = options.optional_text("connection.user")
            if user is None:
                raise InvalidOption("connection.user is missing, and auth.type is BASIC")
            headers["Authorization"] = basic(user, secret_of(options, "connection.password") or "", "connection.user")
        as_json = options.text("request.body.format").lower() == "json"
        content_type = next((headers.pop(name) for name in list(headers) if name.lower() == "content-type"), None)
        return Rules(
            _checked_url(options.text("http.api.url"), "http.api.url"),
            cls.url_setting,
            options.text("request.method").upper(),
            headers,
            content_type or (_JSON if as_json else "text/plain; charset=utf-8"),
            "json" if as_json else "java",
            _confluent_layout(options),
            options.integer("batch.max.size"),
            _limits(options, "http.connect.timeout.ms", "http.request.timeout.ms"),
            _tries(options, "max.retries", "retry.backoff.ms"),
            {"log": "ignore"}.get(_on_null(options, cls.url_setting), _on_null(options, cls.url_setting)),
            _ID_HEADER,
            "https.",
            options.text("behavior.on.error").lower(),
        )


def _confluent_layout(options: Values) -> Layout:
    if options.integer("batch.max.size") == 1 and not options.flag("batch.json.as.array"):
        return SINGLE
    if options.flag("batch.json.as.array"):
        return ARRAY
    prefix, separator, suffix = (options.text(f"batch.{part}").encode() for part in ("prefix", "separator", "suffix"))
    return Layout(prefix, separator, suffix)


_ESCAPES: Final[Callable[[str], str]] = lambda text: (  # noqa: E731  # Aiven's, in three settings
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
)


class AivenHttpSink(WebSink):
    """io.aiven.kafka.connect.http.HttpSinkConnector"""

    class_name = "io.aiven.kafka.connect.http.HttpSinkConnector"
    url_setting = "http.url"
    settings: ClassVar[Sequence[Setting]] = (
        Text("http.url", REQUIRED, ANY, HIGH, "The address.", acted_on=True),
        Text(
            "http.authorization.type",
            REQUIRED,
            OneOf(("none", "static"), any_case=True),
            HIGH,
            "Whether http.headers.authorization is sent.",
            acted_on=True,
        ),
        Secret("http.headers.authorization", MEDIUM, "The Authorization header.", acted_on=True),
        Text("http.headers.content.type", None, ANY, LOW, "The Content-Type.", acted_on=True),
        List("http.headers.additional", (), ANY, LOW, "More headers: NAME:VALUE.", acted_on=True),
        Flag("batching.enabled", False, ANY, HIGH, "Whether a request has several records.", acted_on=True),
        Int("batch.max.size", 500, Between(1, 1_000_000), MEDIUM, "Records of a request.", acted_on=True),
        Text("batch.prefix", "", ANY, HIGH, "What is before them.", acted_on=True),
        Text("batch.suffix", "\n", ANY, HIGH, "What is behind them.", acted_on=True),
        Text("batch.separator", "\n", ANY, HIGH, "What is between them.", acted_on=True),
        Int("max.retries", 1, at_least(0), MEDIUM, "Tries more, before the connector starts anew.", acted_on=True),
        Int("retry.backoff.ms", 3000, at_least(0), MEDIUM, "The first pause; they grow.", acted_on=True),
        Text("kafka.retry.backoff.ms", None, ANY, MEDIUM, "Accepted; what may pass is tried again without end."),
        Int("http.timeout", 30, at_least(1), LOW, "Seconds that a request may take.", acted_on=True),
        Text(
            "decimal.format",
            "BASE64",
            OneOf(("NUMERIC", "BASE64"), any_case=True),
            LOW,
            "Decimals in JSON.",
            acted_on=True,
        ),
        *tls_rows("http."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        refuse_unknown(cls.class_name, cls.settings, config)
        options = read_options(cls.settings, config)
        headers = headers_of(options.list("http.headers.additional"), "http.headers.additional")
        if options.text("http.authorization.type").lower() == "static":
            text = secret_of(options, "http.headers.authorization")
            if text is None:
                raise InvalidOption("http.headers.authorization is missing, and http.authorization.type is static")
            headers["Authorization"] = header("Authorization", text, "http.headers.authorization")[1]
        parts = [_ESCAPES(options.text(f"batch.{part}")).encode() for part in ("prefix", "separator", "suffix")]
        seconds = float(options.integer("http.timeout"))
        return Rules(
            _checked_url(options.text("http.url"), "http.url"),
            cls.url_setting,
            "POST",
            headers,
            header(
                "Content-Type",
                options.optional_text("http.headers.content.type") or "text/plain; charset=utf-8",
                "http.headers.content.type",
            )[1],
            "text",
            Layout(*parts) if options.flag("batching.enabled") else SINGLE,
            options.integer("batch.max.size"),
            Limits(seconds, seconds, _REPLY_BYTES),
            _tries(options, "max.retries", "retry.backoff.ms"),
            "fail",
            _ID_HEADER,
            "http.",
            decimals=options.text("decimal.format").upper(),
        )
