"""The options of the source and the sink: their names, how their values are read, and what is wrong with those given.

Names are those of Spark's Kafka connector where it has one, so that an existing job changes one word. Spark hands them
over in lower case. `kafka.` stands before the settings of our client, which have Kafka's names. An option that nobody
knows is refused with the name that is nearest: a misspelt `startingOffset` would otherwise read from somewhere else.
"""

import warnings
from collections.abc import Mapping
from enum import Flag, auto
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.config.parse import ConfigError
from ottla.config.scopes import Scope, settings
from ottla.config.values import HIDDEN, Type


class OptionError(OttlaError, ValueError):
    """An option is missing, unknown, or has a value that cannot be. The message names it."""


class OptionWarning(UserWarning):
    """An option was accepted and will not do what its author may expect."""


class Use(Flag):
    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE


_NOUNS: Final = {
    Use.BATCH_READ: "a batch read",
    Use.STREAM_READ: "a streaming read",
    Use.BATCH_WRITE: "a batch write",
    Use.STREAM_WRITE: "a streaming write",
}


class Option(NamedTuple):
    name: str
    use: Use
    tolerated: Use = Use(0)
    """Where Spark's connector passes over it with a warning, as we do."""


CLIENT_PREFIX: Final = "kafka."
DECODER_PREFIX: Final = "value.decoder."
"""Before the options of a decoder of the user's own."""

REGISTRY_PREFIX: Final = "schema.registry."
"""Before the settings of a schema registry's client."""

OPTIONS: Final = (
    # which partitions
    Option("subscribe", Use.READ),
    Option("subscribePattern", Use.READ),
    Option("assign", Use.READ),
    # from where to where
    Option("startingOffsets", Use.READ),
    Option("startingTimestamp", Use.READ),
    Option("startingOffsetsByTimestamp", Use.READ),
    Option("startingOffsetsByTimestampStrategy", Use.READ),
    Option("endingOffsets", Use.BATCH_READ),
    Option("endingTimestamp", Use.BATCH_READ),
    Option("endingOffsetsByTimestamp", Use.BATCH_READ),
    # how much at a time
    Option("maxOffsetsPerTrigger", Use.STREAM_READ, Use.BATCH_READ),
    Option("minOffsetsPerTrigger", Use.STREAM_READ, Use.BATCH_READ),
    Option("maxTriggerDelay", Use.STREAM_READ, Use.BATCH_READ),
    Option("maxBytesPerTrigger", Use.STREAM_READ),
    Option("minPartitions", Use.READ),
    Option("maxRecordsPerPartition", Use.READ),
    Option("prefetchBytes", Use.READ),
    # what is read of them
    Option("includeHeaders", Use.READ),
    Option("columns", Use.READ),
    Option("value.format", Use.READ | Use.WRITE),
    Option("value.schema", Use.READ | Use.WRITE),
    Option("value.subject", Use.READ | Use.WRITE),
    Option("value.version", Use.READ | Use.WRITE),
    Option("value.schemaId", Use.READ | Use.WRITE),
    Option("value.message", Use.READ | Use.WRITE),
    Option("value.onError", Use.READ),
    Option("value.deadLetterTopic", Use.READ),
    # where rows go, and how surely
    Option("topic", Use.WRITE),
    Option("delivery", Use.WRITE),
    Option("inlineBytes", Use.WRITE),
    Option("writeName", Use.BATCH_WRITE),
    Option("replayCheck", Use.WRITE),
    # what the sink calls its own topics and transactions
    Option("decisionsTopic", Use.WRITE),
    Option("stagingTopic", Use.WRITE),
    Option("transactionalIdPrefix", Use.WRITE),
    # what is done when something is missing
    Option("failOnDataLoss", Use.READ | Use.WRITE),
    Option("kafkaConsumer.pollTimeoutMs", Use.READ),
    Option("fetchOffset.numRetries", Use.READ),
    Option("fetchOffset.retryIntervalMs", Use.READ),
    Option("idleWaitMs", Use.STREAM_READ),
    Option("checkpointTopicIds", Use.STREAM_READ),
    # Spark's consumers need a group, and this gives it a name; ours need none.
    Option("groupIdPrefix", Use(0), Use.READ),
)
_BY_KEY: Final = {option.name.lower(): option for option in OPTIONS}
_SPARKS_OWN: Final = frozenset(("path", "mergeschema", "checkpointlocation", "queryname"))
"""What Spark itself may put among the options."""


class Options:
    """The options of one use, all names known. The readers raise `OptionError`."""

    def __init__(self, given: Mapping[str, str], use: Use) -> None:
        self._given = {key.lower(): value for key, value in given.items()}
        for key, value in self._given.items():
            if not key.startswith((CLIENT_PREFIX, DECODER_PREFIX, REGISTRY_PREFIX)) and key not in _SPARKS_OWN:
                _check_name(key, value, use)

    def text(self, name: str) -> str | None:
        """What was given, without the spaces around it."""
        assert name.lower() in _BY_KEY, f"{name} is not in the table"
        value = self._given.get(name.lower())
        return None if value is None else value.strip()

    def integer(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise OptionError(f"option {name} is {text!r}, and must be a whole number of at least {least}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.choice(name, {"true": True, "false": False}, default))

    def choice(self, name: str, choices: Mapping[str, Any], default: Any) -> Any:
        """One of several words, in any case."""
        text = self.text(name)
        if text is None:
            return default
        by_word = {word.lower(): meaning for word, meaning in choices.items()}
        if text.lower() not in by_word:
            raise OptionError(f"option {name} is {text!r}, and must be one of: {', '.join(choices)}")
        return by_word[text.lower()]

    def given(self, *names: str) -> list[str]:
        """Those of these names that were given."""
        return [name for name in names if self.text(name) is not None]

    def beginning_with(self, prefix: str) -> dict[str, str]:
        """All that were given whose names begin so, without that, in lower case."""
        return {key.removeprefix(prefix): value for key, value in self._given.items() if key.startswith(prefix)}

    def client_settings(self, refused: Mapping[str, str]) -> dict[str, str]:
        """Kafka's settings, without the prefix. `refused` are those that the source or the sink decides, with why."""
        found = {
            key.removeprefix(CLIENT_PREFIX): value
            for key, value in self._given.items()
            if key.startswith(CLIENT_PREFIX)
        }
        for name in found:
            if name in refused:
                raise OptionError(f"option {CLIENT_PREFIX}{name} cannot be given: {refused[name]}")
        if not found.get("bootstrap.servers", "").strip():
            raise OptionError(
                "option kafka.bootstrap.servers is missing: some brokers of the cluster, as host:port,host:port"
            )
        return found


class ClientOptions(dict[str, str]):
    """The settings of a client. Tasks are given them with their secrets; a log line or an error is not."""

    def __repr__(self) -> str:
        return repr({name: HIDDEN if _is_secret(name) else value for name, value in self.items()})


def _is_secret(name: str) -> bool:
    return any(row.type is Type.PASSWORD for scope in _SCOPES if (row := settings(scope).get(name)) is not None)


def secret_options() -> list[str]:
    """The names of all options that hold secrets."""
    own = {CLIENT_PREFIX + name for scope in _SCOPES for name in settings(scope) if _is_secret(name)}
    return sorted(own | {REGISTRY_PREFIX + name for name in _REGISTRY_SECRETS})


def checked_client_settings(scope: Scope, found: Mapping[str, str]) -> ClientOptions:
    """The settings as they are, if a client takes them; what it objects to is reported with the option's name."""
    from ottla.client.settings import read_settings

    try:
        read_settings(scope, found)
    except ConfigError as wrong:
        complaints = "; ".join(f"option {CLIENT_PREFIX}{problem}" for problem in wrong.problems)
        raise OptionError(complaints) from None
    return ClientOptions(found)


def _check_name(key: str, value: str, use: Use) -> None:
    option = _BY_KEY.get(key)
    if option is None:
        raise OptionError(f"option {key} is unknown{_nearest(key)}")
    if use & option.use:
        return
    if use & option.tolerated:
        warnings.warn(f"option {option.name} has no effect in {_noun(use)}", OptionWarning, stacklevel=2)
        return
    raise OptionError(f"option {option.name} ({value!r}) has no meaning in {_noun(use)}: leave it out")


def _noun(use: Use) -> str:
    return next((noun for one, noun in _NOUNS.items() if one in use), "this use")


def _nearest(key: str) -> str:
    from difflib import get_close_matches  # only those who mistype pay for it

    names = {option.name.lower(): option.name for option in OPTIONS}
    names |= {CLIENT_PREFIX + name: CLIENT_PREFIX + name for scope in _SCOPES for name in settings(scope)}
    if CLIENT_PREFIX + key in names:
        return f"; Kafka's settings begin with kafka.: did you mean {CLIENT_PREFIX}{key}?"
    found = get_close_matches(key, names, n=1, cutoff=0.6)
    return f"; did you mean {names[found[0]]}?" if found else ""


_SCOPES: Final = (Scope.CONSUMER, Scope.PRODUCER)
_REGISTRY_SECRETS: Final = ("basic.auth.user.info", "bearer.auth.token", "ssl.key.password", "ssl.keystore.password",
                            "ssl.keystore.key", "ssl.truststore.password")  # fmt: skip
