"""Records of `__consumer_offsets`, `__transaction_state` and `__share_group_state` as JSON.

The formatters that Kafka's console consumer has for them, by their Java names. Each prints the types of records that
it is for, passes over others, and puts nothing between two records: that is Kafka's format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.base.errors import OttlaError, ProtocolError
from ottla.cli.dump.internal_topics import coordinator_record
from ottla.cli.dump.kafka_json import Json, json_text
from ottla.records.kernel import ConsumerRecord

if TYPE_CHECKING:
    from ottla.cli.console.formatters import Formatter

_OFFSETS: Final = (0, 1)  # OffsetCommit, and as it was long ago
_CLASSIC_GROUPS: Final = (2,)
_SHARE_GROUPS: Final = tuple(range(10, 16))

COORDINATOR_FORMATTERS: Final[dict[str, tuple[str, tuple[int, ...] | None]]] = {
    "OffsetsMessageFormatter": ("group-records", _OFFSETS),
    "GroupMetadataMessageFormatter": ("group-records", _CLASSIC_GROUPS),
    "ShareGroupMessageFormatter": ("group-records", _SHARE_GROUPS),
    "TransactionLogMessageFormatter": ("transaction-records", None),
    "group.share.ShareGroupStateMessageFormatter": ("share-records", None),
}
"""The schemas of a formatter's topic, and the types of records that it prints; None for all of them."""


class UnreadableRecord(OttlaError):
    """A record that is none of its topic's."""


def coordinator_formatter(name: str) -> Formatter:
    facts, wanted = COORDINATOR_FORMATTERS[name]

    def shows(record: ConsumerRecord) -> bytes:
        if record.key is None:
            return b""
        try:
            read = coordinator_record(facts, record.key, record.value, wanted)
        except ProtocolError as problem:
            raise UnreadableRecord(f"Could not read record at offset {record.offset} due to: {problem}") from problem
        if read is None:
            return b""
        shown: dict[str, Json] = {"key": {"type": read.record_type, "data": read.key}, "value": None}
        if read.value is not None:
            shown["value"] = {"version": read.version, "data": read.value}
        return json_text(shown).encode()

    return shows
