"""Plain fetches: of consumers without a session, of partitions that there is nothing to say of but what is in them.

librdkafka and our own consumers have no sessions, and fetch so. What is read is in memory, mostly. Where there is a
compiler, it is read without Python code for each partition (`_plain_fetch.pyx`), and with the same outcome as by
`Fetch`, which takes over where there is an error to tell, aborted transactions, a wait for much, or for the disk.

A plain fetch that finds nothing new in any of its partitions waits there (`WaitingFetch`), and is handled anew when one
of them has grown.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.base.ports import ColdRead, Disk
from ottla.broker.data.fetch_reader import READS_FROM_FOLLOWERS, begins_with_a_cut_batch
from ottla.broker.data.fetch_replies import DATA, TOPIC
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.purgatory import MayRead, Operation, Place
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.log.errors import STORAGE_PROBLEMS, OffsetOutOfRange
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import ProducerState
from ottla.log.reading import NOTHING
from ottla.log.segment import Segment
from ottla.machines.partition.leader import LeaderState
from ottla.runtime.request import RequestContext
from ottla.wire.messages import FetchRequest, FetchResponse

USES_TOPIC_IDS = 13
HAS_REPLICA_STATE = 15

_UNUSUAL = (ColdRead, OffsetOutOfRange, *STORAGE_PROBLEMS)

AtEnd: TypeAlias = dict[Partition, FetchRequest.FetchPartition]
"""Partitions in which there is nothing new, and what was asked of them."""
Read: TypeAlias = list[tuple[Partition, FetchResponse.PartitionData]]
ReadTopics: TypeAlias = tuple[list[FetchResponse.FetchableTopicResponse], int]
"""What is said of each topic, and how many bytes of records that has."""


def read_plain(
    partitions: Partitions,
    disk: Disk,
    context: RequestContext,
    request: FetchRequest,
    max_bytes: int,
    at_end: AtEnd,
    read: Read,
) -> ReadTopics | None:
    """Reads all that a fetch asks for, if it is a plain one. If not, nothing has happened."""
    if context.may_use is not None:
        return None
    try:
        return read_all_plain(partitions, disk, request, context.api_version, max_bytes, at_end, read)
    except _UNUSUAL:
        return None


class WaitingFetch(Operation):
    """A plain fetch that waits at the ends of its partitions. `again` handles what is `given`, as one that does not
    wait: the request and its surroundings.
    """

    __slots__ = ("_again", "_at_end", "_context", "_given", "_request")

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest,
        at_end: AtEnd,
        again: Callable[..., None],
        given: tuple[Any, ...],
    ) -> None:
        self.client = context.connection  # The rest of an operation is the purgatory's.
        self._context = context
        self._request = request
        self._at_end = at_end
        self._again = again
        self._given = given

    def is_done(self, place: Place) -> bool:
        assert isinstance(place, Partition)
        asked = self._at_end[place]
        if place.end_for_readers(self._request.isolation_level) != asked.fetch_offset:
            return True
        is_free_to_choose = self._context.api_version >= READS_FROM_FOLLOWERS
        check = place.check_replica if is_free_to_choose else place.check_leader
        return bool(check(asked.current_leader_epoch))

    def loses_rights(self, may_read: MayRead) -> bool:
        client = self.client
        if all(may_read(client, partition.name.topic) for partition in self._at_end):
            return False
        self._context.may_use = lambda topic: may_read(client, topic)
        return True

    def complete(self) -> None:
        self._request.max_wait_ms = 0
        self._again(*self._given)


def read_none(
    _partitions: Partitions,
    _disk: Disk,
    _request: FetchRequest,
    _version: int,
    _max_bytes: int,
    _at_end: AtEnd,
    _read: Read,
) -> ReadTopics | None:
    """What is to be said of the topics, at most `max_bytes` of records unless the first batch is larger. None if it is
    not a plain fetch, or there is anything else to say about one of the partitions. May raise `_UNUSUAL`.

    Without a compiler there is no quicker way than that of a `Fetch`.
    """
    return None


def count_none(_read: Read) -> None:
    """Counts what was read, when it is sent."""


read_all_plain: Callable[[Partitions, Disk, FetchRequest, int, int, AtEnd, Read], ReadTopics | None] = read_none
count_plain: Callable[[Read], None] = count_none
try:
    from ottla.broker.data._plain_fetch import PlainReads
except ImportError:  # there was no C compiler when the package was installed
    pass
else:
    _reads = PlainReads(
        FetchRequest,
        FetchResponse,
        Partition,
        LeaderState,
        TopicTraffic,
        PartitionLog,
        Segment,
        ProducerState,
        TOPIC,
        DATA,
        NOTHING,
        begins_with_a_cut_batch,
    )
    read_all_plain, count_plain = _reads.read_all, _reads.count
