"""The partitions of topics in the form in which Metadata sends them, kept until something about them changes.

Making them is four times the work of encoding them, and the same for every client of a listener: without this a reply
about 1,000 partitions takes 2.8 ms to make, with it 0.06 ms. They are shared by replies, and never changed.
"""

from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.wire.messages import MetadataResponse

Partitions = list[MetadataResponse.MetadataResponsePartition]


class Form(NamedTuple):
    """What makes the same partition look different: the brokers that can be reached, and what the version can say."""

    listener: str
    lists_gone_replicas: bool
    has_listener_not_found: bool


class DescribedPartitions:
    def __init__(self) -> None:
        self._by_form: dict[Form, dict[Uuid, Partitions]] = {}

    def of(self, form: Form) -> dict[Uuid, Partitions]:
        """What is known of topics by id; the caller adds what it had to make."""
        return self._by_form.setdefault(form, {})

    def on_metadata(self, delta: MetadataDelta) -> None:
        """A broker that comes, goes or loses a directory may change any partition; otherwise it is known which."""
        if delta.brokers:
            self._by_form.clear()
            return
        for known in self._by_form.values():
            for topic_id, _ in delta.partitions:
                known.pop(topic_id, None)
            for topic_id in delta.topics_deleted:
                known.pop(topic_id, None)
