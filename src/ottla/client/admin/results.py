"""What became of each item of a call: a mapping from the item to its value, which raises where the item failed.

    created = admin.create_topics(["clicks", "orders"])
    created["clicks"].topic_id        raises if that topic could not be created
    created.errors                    {"orders": TopicAlreadyExists(…)}
    created.raise_first()             raises the first error if there is one, else returns the results

Errors that nobody looks at are reported as a warning when the results go away: a call whose outcome is dropped must not
fail silently.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from ottla.client.errors import KafkaError, error_for

K = TypeVar("K")
V = TypeVar("V")

Outcome: TypeAlias = V | KafkaError


def failure(answer: Any) -> KafkaError | None:
    """The error that this part of a response tells of, if it does."""
    return error_for(answer.error_code, getattr(answer, "error_message", None)) if answer.error_code else None


class UnnoticedErrors(UserWarning):
    """An admin call failed for some items, and its results were never looked at."""


class Results(Mapping[K, V]):
    """Outcomes by item, in the order in which the items were given. `values()` and `items()` raise at a failed one."""

    __slots__ = ("_call", "_noticed", "_outcomes")

    def __init__(self, call: str, outcomes: Mapping[K, V | KafkaError]) -> None:
        self._call = call
        self._outcomes = outcomes
        self._noticed = False

    def __getitem__(self, item: K) -> V:
        self._noticed = True
        outcome = self._outcomes[item]
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[K]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, item: object) -> bool:
        return item in self._outcomes

    @property
    def errors(self) -> dict[K, KafkaError]:
        """The items that failed, and why."""
        self._noticed = True
        return {item: outcome for item, outcome in self._outcomes.items() if isinstance(outcome, KafkaError)}

    @property
    def succeeded(self) -> dict[K, V]:
        """The items that did not fail, and their values."""
        return {item: outcome for item, outcome in self._outcomes.items() if not isinstance(outcome, KafkaError)}

    def raise_first(self) -> "Results[K, V]":
        for error in self.errors.values():
            raise error
        return self

    def __repr__(self) -> str:
        self._noticed = True
        return f"Results({dict(self._outcomes)!r})"

    def __del__(self) -> None:
        if self._noticed or not self._outcomes:
            return
        if errors := self.errors:
            answer = "; ".join(f"{item}: {error}" for item, error in list(errors.items())[:3])
            more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
            warnings.warn(f"{self._call}: {answer}{more}", UnnoticedErrors, stacklevel=2)
