"""Keys and values to bytes before they are sent, by the serializers of the settings."""

from collections.abc import Sequence
from typing import Any

from ottla.base.ports import Buffer
from ottla.client.errors import SerializationFailed
from ottla.client.serialization import Header, Serializer, serialize_bytes, serializer
from ottla.client.settings import ClientSettings
from ottla.config.parse import ConfigError, Problem


class Serializing:
    """`is_needed` is False where keys and values are bytes already: then records need not come here."""

    def __init__(self, settings: ClientSettings) -> None:
        self._key = _serializer(settings, "key.serializer")
        self._value = _serializer(settings, "value.serializer")
        self.is_needed = self._key is not serialize_bytes or self._value is not serialize_bytes

    def __call__(
        self, topic: str, value: Any, key: Any, headers: Sequence[Header] | None
    ) -> tuple[Buffer | None, Buffer | None, Sequence[Header] | None]:
        """Value and key as bytes, and the headers, which serializers may have added to."""
        together = list(headers or ())
        value = _serialized(self._value, topic, value, together, "value")
        key = _serialized(self._key, topic, key, together, "key")
        return value, key, together or None


def _serializer(settings: ClientSettings, key: str) -> Serializer[Any]:
    given = settings.plug_in(key)
    try:
        return serializer(given)
    except ValueError as expected:
        raise ConfigError((Problem(key, str(given), str(expected)),)) from None


def _serialized(serialize: Serializer[Any], topic: str, value: Any, headers: list[Header], what: str) -> Buffer | None:
    if value is None:
        return None
    try:
        made = serialize(topic, value, headers)
    except Exception as problem:
        raise SerializationFailed(f"the {what} of a record for {topic} could not be serialized: {problem}") from problem
    if isinstance(made, str):  # the only one that people return by mistake
        raise SerializationFailed(
            f"the {what} of a record for {topic} cannot be sent: "
            "its serializer has returned str, and not bytes: encode it"
        )
    return made
