"""Topics that a transform has renamed: sinks that keep something by topic must know, also if another topic of the
connector has that name."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.base.ids import TopicPartition
from ottla.connect.connector import Place
from ottla.connect.data.records import Records


def renamed_topics(
    batches: Sequence[Records], positions: Mapping[TopicPartition, int], places: Callable[[Records], list[Place]]
) -> Iterator[str]:
    """The names that records of a put have, and their topic in Kafka has not. A put of one topic is known by its name;
    only where there are several is each record's place looked at."""
    topics = {partition.topic for partition in positions}
    for records in batches:
        if records.topic not in topics or (
            len(topics) > 1 and any(place.topic != records.topic for place in places(records))
        ):
            yield records.topic
