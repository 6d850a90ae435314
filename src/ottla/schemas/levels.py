"""The levels of compatibility: which pairs of a subject's history are compared, in which direction, and what is said.

| level | a new schema must | against |
| --- | --- | --- |
| NONE | do nothing | |
| BACKWARD | read what the old one wrote | the latest |
| FORWARD | be readable by the old one | the latest |
| FULL | both | the latest |
| …_TRANSITIVE | the same | every version, the newest first, until one refuses |

The messages are Confluent's, word for word, since tools look for them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.schemas.schema import Incompatibility, ParsedSchema, Policy

LONGEST_SCHEMA_IN_A_MESSAGE: Final = 10 * 1024


class Level(Enum):
    """A compatibility level, by Confluent's name: (reads the old, is read by the old, looks at all versions)."""

    NONE = (False, False, False)
    BACKWARD = (True, False, False)
    BACKWARD_TRANSITIVE = (True, False, True)
    FORWARD = (False, True, False)
    FORWARD_TRANSITIVE = (False, True, True)
    FULL = (True, True, False)
    FULL_TRANSITIVE = (True, True, True)

    @property
    def reads_the_old(self) -> bool:
        return self.value[0]

    @property
    def is_read_by_the_old(self) -> bool:
        return self.value[1]

    @property
    def is_transitive(self) -> bool:
        return self.value[2]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a schema may not follow a version."""

    version: int | None
    """The old version that it was compared with."""
    reader: str
    """`new` or `old`: whose schema was to read."""
    incompatibility: Incompatibility | None
    """None where the kinds differ: nothing could be compared."""

    @property
    def message(self) -> str:
        """Confluent's text."""
        if self.incompatibility is None:
            return "Incompatible because of different schema type"
        return self.incompatibility.worded(self.reader, "old" if self.reader == "new" else "new")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a comparison. It is compatible if there are no refusals."""

    refusals: tuple[Refusal, ...] = ()
    messages: tuple[str, ...] = ()
    """As Confluent's registry gives them for `verbose=true`, with the old version and its text at the end."""

    @property
    def is_compatible(self) -> bool:
        return not self.refusals


def check(
    level: Level,
    new: ParsedSchema,
    previous: Iterable[tuple[int | None, ParsedSchema]],
    policy: Policy = "STRICT",
) -> Verdict:
    """Whether `new` may follow `previous`: versions and their schemas, the newest FIRST. It is looked at only as far as
    the level needs, so a generator that parses may be given. A version of None is not named in the messages."""
    if level is Level.NONE:
        return Verdict()
    for version, old in previous:
        verdict = _compare(level, new, version, old, policy)
        if not verdict.is_compatible or not level.is_transitive:
            return verdict
    return Verdict()


def _compare(level: Level, new: ParsedSchema, version: int | None, old: ParsedSchema, policy: Policy) -> Verdict:
    if new.kind != old.kind:
        refusal = Refusal(version, "new", None)
        return Verdict((refusal,), (refusal.message,))
    refusals: list[Refusal] = []
    if level.is_read_by_the_old:
        refusals += (Refusal(version, "old", found) for found in old.incompatibilities(new, policy))
    forward_alone = len(refusals)
    if level.reads_the_old:
        refusals += (Refusal(version, "new", found) for found in new.incompatibilities(old, policy))
    messages = [refusal.message for refusal in refusals]
    # FULL names the old schema only after what the new one cannot read, and is silent about it otherwise.
    if len(refusals) > (forward_alone if level.reads_the_old else 0):
        messages += _about_the_old(version, old)
    return Verdict(tuple(refusals), tuple(messages))


def _about_the_old(version: int | None, old: ParsedSchema) -> list[str]:
    about = [] if version is None else [f"{{oldSchemaVersion: {version}}}"]
    text = old.canonical
    if len(text) <= LONGEST_SCHEMA_IN_A_MESSAGE:
        about.append(f"{{oldSchema: '{text}'}}")
    else:
        about.append(f"{{oldSchema: <truncated> '{text[:LONGEST_SCHEMA_IN_A_MESSAGE]}...'}}")
    return about
