"""Whether settings that a client gives at run time can be taken, in Apache Kafka's words.

Clients and their users match on these messages, so they are Kafka's and not the ones our own configuration files get.
"""

from collections.abc import Mapping

from ottla.config.bounds import Between, Items, OneOf, Shaped
from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.config.setting import Dynamic, Setting
from ottla.config.values import Type, Value, parse_value
from ottla.machines.metadata.refusal import Refusal
from ottla.machines.metadata.settings.effective_settings import CLIENT_METRICS_SETTINGS, GROUP_LIMITS, GROUP_SETTINGS
from ottla.machines.patterns import ClientPattern, InvalidPattern
from ottla.wire.errors import ErrorCode

REMOTE_STORAGE_OFF = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)
METRICS_INTERVAL_MS = range(100, 3_600_001)
METRICS_SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_topic_settings(values: Mapping[str, str], topic_value: Mapping[str, Value], config: Values) -> Refusal | None:
    """`values` are all the topic will have of its own; `topic_value` is what it has where it sets nothing."""
    table = settings(Scope.TOPIC)
    for key in values:
        if key not in table:
            return _invalid(f"Unknown topic config name: {key}")
    parsed: dict[str, Value] = {}
    for key, text in values.items():
        value = checked_value(table[key], text)
        if isinstance(value, Refusal):
            return value
        parsed[key] = value
    shortest_ms = parsed.get("min.compaction.lag.ms", topic_value["min.compaction.lag.ms"])
    longest_ms = parsed.get("max.compaction.lag.ms", topic_value["max.compaction.lag.ms"])
    assert isinstance(shortest_ms, int)
    assert isinstance(longest_ms, int)
    if shortest_ms > longest_ms:
        lags = f"min.compaction.lag.ms ({shortest_ms}) > max.compaction.lag.ms ({longest_ms})"
        return _invalid(f"conflict topic config setting {lags}")
    if parsed.get("remote.storage.enable") and not config.flag("remote.log.storage.system.enable"):
        return _invalid(REMOTE_STORAGE_OFF)
    return None


def check_broker_settings(values: Mapping[str, str], *, of_one_broker: bool) -> Refusal | None:
    """Names that nobody knows are taken: they may belong to a plugin."""
    table = settings(Scope.BROKER)
    known = {key: table[key] for key in values if key in table}
    read_only = [key for key, row in known.items() if row.dynamic is Dynamic.READ_ONLY]
    if read_only:
        return _bad_request(f"Cannot update these configs dynamically: [{', '.join(read_only)}]")
    for key, row in known.items():
        value = checked_value(row, values[key])
        if isinstance(value, Refusal):
            return _bad_request(value.message or "")
    of_brokers = [key for key, row in known.items() if row.dynamic is Dynamic.PER_BROKER]
    if of_brokers and not of_one_broker:
        return _bad_request(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(of_brokers)}]"
        )
    return None


def check_group_settings(values: Mapping[str, str], config: Values) -> Refusal | None:
    for key in values:
        if key not in GROUP_SETTINGS:
            return _invalid(f"Unknown group config name: {key}")
    parsed: dict[str, int] = {}
    for key, text in values.items():
        value = checked_value(GROUP_SETTINGS[key], text)
        if isinstance(value, Refusal):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            parsed[key] = value
    for key, value in parsed.items():
        lowest, highest = GROUP_LIMITS.get(key, (None, None))
        if lowest is not None and value < config.integer(lowest):
            return _invalid(f"{key} must be greater than or equal to {lowest}")
        if highest is not None and value > config.integer(highest):
            return _invalid(f"{key} must be less than or equal to {highest}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms = parsed.get(session, config.integer(f"group.{session}"))
        if session_ms <= parsed.get(heartbeat, config.integer(f"group.{heartbeat}")):
            return _invalid(f"{session} must be greater than {heartbeat}")
    return None


def check_client_metrics_settings(name: str, values: Mapping[str, str]) -> Refusal | None:
    if not name:
        return _bad_request("Subscription name can't be empty")
    for key in values:
        if key not in CLIENT_METRICS_SETTINGS:
            return _bad_request(f"Unknown client metrics configuration: {key}")
    for key, text in values.items():
        value = checked_value(CLIENT_METRICS_SETTINGS[key], text)
        if isinstance(value, Refusal):
            return value
        if key == "interval.ms" and value not in METRICS_INTERVAL_MS:
            return _bad_request(
                f"Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
            )
        if key == "match":
            assert isinstance(value, tuple)
            for selector in value:
                if not _is_selector(str(selector)):
                    return _invalid(f"Illegal client matching pattern: {selector}")
    return None


def _is_selector(text: str) -> bool:
    """A regular expression for one property of a client, as `client_id=orders-.*`.

    Kafka reads it as Java's, which can look ahead and back: this is the one place where its syntax is larger than ours.
    """
    name, _, pattern = text.partition("=")
    if name.strip() not in METRICS_SELECTORS or not pattern or "=" in pattern:
        return False
    try:
        ClientPattern(pattern.strip())
    except InvalidPattern:
        return False
    return True


def checked_value(row: Setting, text: str) -> Value | Refusal:
    """The value of a setting, or what is wrong with it."""
    try:
        value = parse_value(row.type, text)
    except ValueError:
        kind = row.type.value.upper()
        expected = "Expected value to be either true or false" if row.type is Type.BOOLEAN else None
        return _wrong(row.name, text, expected or f"Not a number of type {kind}")
    if row.name == "cleanup.policy" and isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))  # the one list that may repeat itself
    if row.bound is None or row.bound.allows(value):
        return value
    match row.bound:
        case Between(low, high, also) if isinstance(value, int | float):
            if also is not None:
                return _wrong(row.name, value, f"Value must be between {low} and {high} or equal to {also}")
            if value < low:
                return _wrong(row.name, value, f"Value must be at least {low}")
            return _wrong(row.name, value, f"Value must be no more than {high}")
        case OneOf(names):
            return _wrong(row.name, value, f"String must be one of: {', '.join(names)}")
        case Items(names) if isinstance(value, tuple):
            return _wrong_list(row.name, value, names)
        case Shaped() if isinstance(value, tuple):
            form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            reason = f"{row.name} must be the literal '*' or a list of replicas in the following format: {form}"
            return _wrong(row.name, f"[{', '.join(value)}]", reason)
    return _wrong(row.name, value, f"it must be {row.bound}")


def _wrong_list(key: str, value: tuple[str, ...], names: tuple[str, ...]) -> Refusal:
    if not value:
        return _invalid(f"Configuration '{key}' must not be empty. Valid values include: [{', '.join(names)}]")
    if len(set(value)) != len(value):
        return _invalid(f"Configuration '{key}' values must not be duplicated.")
    if "" in value:
        return _invalid(f"Configuration '{key}' values must not be empty.")
    stranger = next(item for item in value if item not in names)
    return _wrong(key, stranger, f"String must be one of: {', '.join(names)}")


def _wrong(key: str, value: Value, reason: str) -> Refusal:
    return _invalid(f"Invalid value {value} for configuration {key}: {reason}")


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)


def _bad_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
