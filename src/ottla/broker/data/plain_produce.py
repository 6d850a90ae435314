"""Plain batches (`records.kernel.PlainBatches`), appended as they are: what nearly all produce requests consist of.

Thousands of clients with small batches send nothing else, so what is done for them is all that a node does. Where there
is a compiler, it is done without Python code for each partition (`_plain_produce.pyx`), and with the same outcome as by
`Produce`, whose methods are called for a batch that turns out to need more: it does not fit into the segment, its
producer is new or sends it again, it does not match its checksum, the disk fails.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.broker.data.produce_replies import TAKEN, TOPIC
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.quick_append import partition_end
from ottla.broker.partitions.topic_settings import TopicSettings
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.machines.metadata.topic_names import INTERNAL
from ottla.records.validate import ProduceRules
from ottla.wire.messages import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from ottla.broker.data.produce import Produce
    from ottla.broker.partitions.held_partitions import Partitions


Answers: TypeAlias = list[ProduceResponse.TopicProduceResponse]


def append_none(
    _partitions: "Partitions",
    _topics: list[ProduceRequest.TopicProduceData],
    _acks: int,
    _uses_ids: bool,
    _now_ms: int,
    _grown: list[Partition],
    _begin: "type[Produce]",
    _arguments: tuple[Any, ...],
) -> "tuple[Answers, Produce | None] | None":
    """The answers to batches that were appended, and a `Produce` of the arguments if one of them needed it. What has
    grown is added to `grown`. None, and nothing has happened, if one of the batches is not plain, or to be refused.

    Without a compiler there is no quicker way than that of a `Produce`.
    """
    return None


append_all_plain: Callable[..., "tuple[Answers, Produce | None] | None"] = append_none
if partition_end is not None:
    from ottla.broker.data._plain_produce import PlainAppends

    append_all_plain = PlainAppends(
        partition_end,
        ProduceRequest,
        ProduceResponse,
        Partition,
        TopicSettings,
        ProduceRules,
        TopicTraffic,
        TAKEN,
        TOPIC,
        INTERNAL,
    ).append_all
