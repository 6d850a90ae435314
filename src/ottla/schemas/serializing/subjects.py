"""Under which subject a schema is registered: by topic, by record, by both, or as a function says."""

from collections.abc import Callable
from typing import Final

from ottla.schemas.faults import CannotEncode

SubjectStrategy = Callable[[str | None, bool, str | None], str]
"""Of topic, whether it is the key, and the full name of the record: the subject."""


def topic_name(topic: str | None, is_key: bool, record: str | None) -> str:
    """`orders-value`: Confluent's TopicNameStrategy."""
    if topic is None:
        raise CannotEncode("the subject is named after the topic, and none was given")
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str | None, is_key: bool, record: str | None) -> str:
    """`shop.Order`: RecordNameStrategy. Several kinds of records may be in a topic."""
    if record is None:
        raise CannotEncode(
            "the subject is named after the record, and the schema is none (JSON Schema: it has no title)"
        )
    return record


def topic_record_name(topic: str | None, is_key: bool, record: str | None) -> str:
    """`orders-shop.Order`: TopicRecordNameStrategy."""
    if topic is None:
        raise CannotEncode("the subject is named after the topic, and none was given")
    return f"{topic}-{record_name(topic, is_key, record)}"


STRATEGIES: Final[dict[str, SubjectStrategy]] = {
    "topic": topic_name,
    "record": record_name,
    "topic_record": topic_record_name,
}
_JAVA: Final = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def strategy(given: str | SubjectStrategy) -> SubjectStrategy:
    """The strategy that a setting names, in our words or by Confluent's class, or is."""
    if not isinstance(given, str):
        return given
    found = STRATEGIES.get(given) or _JAVA.get(given.rpartition(".")[2])
    if found is None:
        raise ValueError(
            f"one of {', '.join(STRATEGIES)}, Confluent's class of such a name, or a function, not {given!r}"
        )
    return found
