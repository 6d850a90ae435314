"""What the sink calls its topics and transactions in the cluster. Options change it, so that ACLs can keep jobs apart.

A principal that may write to a query's topic of decisions can stop the query, and one that may use its transactional
ids can end its transactions. Jobs that must not touch each other get names of their own: `{query}` in a topic's name
stands for the query's id, and a topic that is named so belongs to one query.
"""

from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.producer.append import partition_for_key

QUERY: Final = "{query}"
_NO_QUERY: Final = "write"
SHARED_PARTITIONS: Final = 16
"""Of a topic that queries share."""


class SinkNames(NamedTuple):
    decisions: str = "__ottla_spark_decisions"
    staging: str = "__ottla_spark_staging"
    transactions: str = "ottla-spark"
    """What transactional ids begin with, before a dot."""

    def driver_id(self, query_id: str) -> str:
        return f"{self.transactions}.{query_id}.driver"

    def write_id(self, token: str) -> str:
        return f"{self.transactions}.write.{token}"

    def task_prefix(self, query_id: str) -> str:
        return f"{self.transactions}.{query_id}.task."

    def decisions_of(self, query_id: str) -> TopicPartition:
        """Where the decisions of a query are."""
        topic = _resolved(self.decisions, query_id)
        count = SHARED_PARTITIONS if topic == self.decisions else 1
        return TopicPartition(topic, partition_for_key(query_id.encode(), count))

    def staging_of(self, query_id: str | None) -> str:
        return _resolved(self.staging, query_id or _NO_QUERY)


def _resolved(name: str, query_id: str) -> str:
    """A write of `foreachBatch` has its name behind the query's id, after a dot."""
    return name.replace(QUERY, query_id.partition(".")[0])
