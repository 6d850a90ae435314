"""Names of subjects, and the contexts that they are in.

A subject `:.ctx:name` is `name` in the context `.ctx`; a name without that prefix is in the default context, `.`. A
context counts its own ids. `:.ctx:` alone is the context itself, which configs and modes may be set for, and
`:.__GLOBAL:` stands for all contexts together. `:*:name` means `name` in any context, where something is looked for.
"""

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
ANY_CONTEXT: Final = "*"
GLOBAL_CONTEXT: Final = ".__GLOBAL"
WILDCARD: Final = ":*:"
_PREFIX: Final = ":."
_RESERVED: Final = ("__GLOBAL", "__EMPTY")


class SubjectName(NamedTuple):
    """A subject's name taken apart. `subject` is empty where the whole context is meant."""

    context: str
    subject: str

    @property
    def is_qualified(self) -> bool:
        return self.context != DEFAULT_CONTEXT

    @property
    def prefix(self) -> str:
        """What stands before the names of this context."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    def __str__(self) -> str:
        return self.prefix + self.subject


def read_name(text: str) -> SubjectName:
    if text.startswith(_PREFIX):
        context, _, subject = text[1:].partition(":")
        return SubjectName(context, subject)
    if text.startswith(WILDCARD):
        return SubjectName(ANY_CONTEXT, text[len(WILDCARD) :])
    return SubjectName(DEFAULT_CONTEXT, text)


def context_of(subject: str | None) -> str:
    """The context of a subject. None is what configs and modes of the default context stand under."""
    if subject is None or not subject.startswith(":"):
        return DEFAULT_CONTEXT
    return read_name(subject).context


def context_prefix(subject: str) -> str:
    return read_name(subject).prefix


def normalized(text: str) -> str:
    """The one way to write a name: `:.:name` is `name`."""
    return str(read_name(text)) if text.startswith(":") else text


def qualified(parent: str, subject: str) -> str:
    """A subject as it is meant by what stands in `parent`: one without a context is in that of its parent."""
    name = read_name(subject)
    return subject if name.is_qualified else context_prefix(parent) + name.subject


def is_default_context(subject: str | None) -> bool:
    """Whether the name stands for the default context as a whole."""
    return subject is None or read_name(subject) == (DEFAULT_CONTEXT, "")


def is_global_context(subject: str | None) -> bool:
    return subject is not None and read_name(subject) == (GLOBAL_CONTEXT, "")


def is_context(subject: str | None) -> bool:
    """Whether a context as a whole is meant, and no subject of it."""
    return subject is None or not read_name(subject).subject


def covers(name: str | None, subject: str) -> bool:
    """Whether a config or mode that is set for `name` is one of `subject`: it is the subject, or its context."""
    if name is None or name == subject:
        return True
    read = read_name(name)
    return not read.subject and (read.context == GLOBAL_CONTEXT or read.context == context_of(subject))


def is_valid(subject: str, *, may_be_global: bool = False) -> bool:
    """Whether something may be registered under the name; `may_be_global`: or set for it."""
    if any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in subject):
        return False
    name = read_name(subject)
    return name.subject not in _RESERVED and (may_be_global or name.context != GLOBAL_CONTEXT)


def context_name(text: str) -> str:
    """The context that somebody names as `ctx`, `.ctx` or `:.ctx:`, as a prefix of subjects. Raises `ValueError`."""
    text = text.removeprefix(":").removesuffix(":")
    if ":" in text:
        raise ValueError(f"Context name '{text}' cannot contain a colon")
    if not text.startswith("."):
        text = f".{text}"
    return "" if text == DEFAULT_CONTEXT else f":{text}:"
