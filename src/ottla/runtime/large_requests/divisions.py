"""Which requests are handled in parts, and how the answers to the parts belong together.

A request is divided along the lists that `asked` names, from the outer to the inner one. `answered` are the lists of
the response that hold the answers, each with the fields that tell which entry an answer is about. An API is here if
each entry is answered for itself, and takes long enough that a hundred thousand of them would keep others waiting. Not
here is what is decided as a whole: CreateTopics, whose topics are made together or not at all, and which refuses more
than 10,000 partitions at once as Apache Kafka does; the partitions of one transaction in AddPartitionsToTxn; a Fetch,
which has one limit of bytes and one session. The last two go through their entries in steps of their own.

Some APIs look at several entries at once, and are divided so that nobody can tell. Those that have one answer for
entries that mean the same say `joins`; so do those that describe something, which need not be described a hundred
thousand times because it is asked for as often. Those that refuse what is named twice have `named_once`, and such
entries come to the same part.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

MOST_BYTES_AT_ONCE: Final = 8 << 10
MOST_ENTRIES_AT_ONCE: Final = 500
"""A request that has more of both is handled in parts."""


class Answers(NamedTuple):
    """A list of the response. `about` are the fields that say what an answer in it is about."""

    list: str
    about: tuple[str, ...] = ()


class Division(NamedTuple):
    """See the module. `named_once` is given the structs around an innermost entry, and the entry itself.

    `union` is a list of the response that has everything once, whichever part it was told for.
    """

    asked: tuple[str, ...]
    answered: tuple[Answers, ...]
    joins: bool = False
    named_once: Callable[[tuple[Any, ...], Any], Hashable] | None = None
    union: Answers | None = None


def _partition_of_topic(around: tuple[Any, ...], partition: Any) -> Hashable:
    return (around[0].name, partition.partition_index) if around else partition.name


def _resource(_around: tuple[Any, ...], resource: Any) -> Hashable:
    return resource.resource_type, resource.resource_name


def _name(_around: tuple[Any, ...], topic: Any) -> Hashable:
    name: str = topic.name
    return name


_TOPICS: Final = Answers("topics", ("name",))
_TOPICS_OR_IDS: Final = Answers("topics", ("name", "topic_id"))
_PARTITIONS: Final = Answers("partitions")
_EACH_PARTITION: Final = Answers("partitions", ("partition_index",))
_RESOURCE: Final = ("resource_type", "resource_name")

DIVISIONS: Final[dict[int, tuple[Division, ...]]] = {
    ApiKey.PRODUCE: (
        Division(
            ("topic_data", "partition_data"),
            (Answers("responses", ("name", "topic_id")), Answers("partition_responses")),
            union=Answers("node_endpoints", ("node_id",)),
        ),
    ),
    ApiKey.LIST_OFFSETS: (
        Division(("topics", "partitions"), (_TOPICS, _PARTITIONS), named_once=_partition_of_topic),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Division(("topics", "partitions"), (Answers("topics", ("topic",)), _PARTITIONS)),
    ),
    ApiKey.DELETE_RECORDS: (Division(("topics", "partitions"), (_TOPICS, _PARTITIONS)),),
    ApiKey.DESCRIBE_PRODUCERS: (Division(("topics", "partition_indexes"), (_TOPICS, _EACH_PARTITION), joins=True),),
    # Groups
    ApiKey.OFFSET_COMMIT: (Division(("topics", "partitions"), (_TOPICS_OR_IDS, _PARTITIONS), joins=True),),
    ApiKey.OFFSET_FETCH: (
        Division(
            ("groups", "topics", "partition_indexes"),
            (Answers("groups", ("group_id",)), _TOPICS_OR_IDS, _EACH_PARTITION),
            joins=True,
        ),
        Division(("topics", "partition_indexes"), (_TOPICS, _EACH_PARTITION), joins=True),
    ),
    ApiKey.OFFSET_DELETE: (Division(("topics", "partitions"), (_TOPICS, _PARTITIONS), joins=True),),
    ApiKey.FIND_COORDINATOR: (Division(("coordinator_keys",), (Answers("coordinators"),)),),
    ApiKey.DESCRIBE_GROUPS: (Division(("groups",), (Answers("groups", ("group_id",)),), joins=True),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Division(("group_ids",), (Answers("groups", ("group_id",)),), joins=True),),
    ApiKey.DELETE_GROUPS: (Division(("groups_names",), (Answers("results", ("group_id",)),), joins=True),),
    # Transactions
    ApiKey.ADD_PARTITIONS_TO_TXN: (Division(("transactions",), (Answers("results_by_transaction"),)),),
    ApiKey.TXN_OFFSET_COMMIT: (Division(("topics", "partitions"), (_TOPICS, _PARTITIONS), joins=True),),
    ApiKey.WRITE_TXN_MARKERS: (
        Division(
            ("markers", "topics", "partition_indexes"),
            (Answers("markers", ("producer_id",)), _TOPICS, _EACH_PARTITION),
            joins=True,
        ),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Division(("transactional_ids",), (Answers("transaction_states", ("transactional_id",)),), joins=True),
    ),
    # Administration
    ApiKey.METADATA: (Division(("topics",), (Answers("topics", ("name", "topic_id")),), joins=True),),
    ApiKey.DESCRIBE_CONFIGS: (Division(("resources",), (Answers("results", _RESOURCE),), joins=True),),
    ApiKey.ALTER_CONFIGS: (Division(("resources",), (Answers("responses"),), named_once=_resource),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Division(("resources",), (Answers("responses"),), named_once=_resource),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Division(("dirs", "topics", "partitions"), (Answers("results", ("topic_name",)), _PARTITIONS), joins=True),
    ),
    ApiKey.CREATE_PARTITIONS: (
        Division(("topics",), (Answers("results", ("name",)),), joins=True, named_once=_name),
    ),
    ApiKey.ELECT_LEADERS: (
        Division(
            ("topic_partitions", "partitions"),
            (Answers("replica_election_results", ("topic",)), Answers("partition_result")),
        ),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        Division(("topics", "partitions"), (Answers("responses", ("name",)), _PARTITIONS)),
    ),
    ApiKey.DESCRIBE_QUORUM: (
        Division(("topics", "partitions"), (Answers("topics", ("topic_name",)), _PARTITIONS)),
    ),
}  # fmt: skip


def division_of(api_key: int, request: Message) -> Division | None:
    """How the request is to be divided; None if it is handled as it is."""
    for division in DIVISIONS.get(api_key, ()):
        if _has_more([request], division.asked, MOST_ENTRIES_AT_ONCE):
            return division
    return None


def _has_more(owners: Sequence[Any], asked: tuple[str, ...], most: int) -> bool:
    """Whether there are more entries than that in the lists, at any depth."""
    count = 0
    for owner in owners:
        entries = getattr(owner, asked[0]) or ()
        count += len(entries)
        if count > most or (len(asked) > 1 and _has_more(entries, asked[1:], most)):
            return True
    return False
