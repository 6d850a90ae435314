"""Transactions and idempotent producers. Their coordinator, its topic, and how long producers are remembered."""

from ottla.config.bounds import at_least
from ottla.config.setting import ANY, CLUSTER_WIDE, HIGH, LOW, Flag, Int, Short

SETTINGS = (
    Int("transaction.max.timeout.ms", 900_000, at_least(1), HIGH,
        "Longest transaction timeout that a producer may ask for.", acted_on=True),
    Int("transactional.id.expiration.ms", 604_800_000, at_least(1), HIGH,
        "Time without use after which a transactional id is forgotten.", acted_on=True),
    Int("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, at_least(1), LOW,
        "Time between two looks for transactions to abort because they ran too long.", acted_on=True),
    Int("transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, at_least(1), LOW,
        "Time between two looks for transactional ids to forget.", acted_on=True),
    Flag("transaction.partition.verification.enable", True, ANY, LOW,
         "Whether the leader asks the coordinator if a partition really belongs to a transaction before it takes the "
         "first write (KIP-890).", CLUSTER_WIDE, acted_on=True),
    Flag("transaction.two.phase.commit.enable", False, ANY, LOW,
         "Whether producers may take part in two-phase commit, with transactions that never time out (KIP-939)."),
    Int("add.partitions.to.txn.retry.backoff.ms", 20, at_least(1), HIGH,
        "First pause before the broker asks the coordinator again to add partitions to a transaction.", acted_on=True),
    Int("add.partitions.to.txn.retry.backoff.max.ms", 100, at_least(0), HIGH,
        "How long it asks before the client is told to.", acted_on=True),
    Int("producer.id.expiration.ms", 86_400_000, at_least(1), LOW,
        "Time without a write after which a partition forgets a producer's last sequence numbers.",
        CLUSTER_WIDE, acted_on=True),

    # __transaction_state
    Int("transaction.state.log.num.partitions", 50, at_least(1), HIGH,
        "Partitions of `__transaction_state`; not to be changed once it exists.", acted_on=True),
    Short("transaction.state.log.replication.factor", 3, at_least(1), HIGH,
          "Replicas of `__transaction_state`; it cannot be created with fewer brokers.", acted_on=True),
    Int("transaction.state.log.min.isr", 2, at_least(1), HIGH,
        "Its `min.insync.replicas`.", acted_on=True),
    Int("transaction.state.log.segment.bytes", 104_857_600, at_least(1), HIGH,
        "Its `segment.bytes`: small, so that it is compacted and loaded fast.", acted_on=True),
    Int("transaction.state.log.load.buffer.size", 5_242_880, at_least(1), HIGH,
        "Bytes read at a time while a coordinator loads a partition of it; a bigger batch is read whole.",
        acted_on=True),
)
