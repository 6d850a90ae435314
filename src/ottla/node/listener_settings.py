"""The settings of one listener: `listener.name.<listener>.<setting>` before `<setting>` itself (KIP-103)."""

from collections.abc import Iterator, Mapping

from ottla.config.parse import LISTENER_PREFIX, Values
from ottla.config.values import Value


class ListenerValues(Mapping[str, Value]):
    def __init__(self, values: Values, listener: str) -> None:
        self._values = values
        self._prefix = f"{LISTENER_PREFIX}{listener.lower()}."

    def __getitem__(self, key: str) -> Value:
        own = self.own(key)
        return own if own is not None else self._values[key]

    def own(self, key: str) -> Value:
        """What was given for this listener alone, or None."""
        return self._values.given.get(self._prefix + key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
