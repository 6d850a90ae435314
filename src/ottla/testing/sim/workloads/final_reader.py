"""Reads a whole cluster when all is over: every record of every partition, as a consumer sees it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import make_member
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import FAST

_POLL_MS = 20


class FinalRead(NamedTuple):
    """Offsets and values of each partition, in order."""

    everything: Mapping[TopicPartition, Sequence[tuple[int, bytes]]]
    committed: Mapping[TopicPartition, Sequence[tuple[int, bytes]]]


def _is_stable(core: ConsumerCore, partition: TopicPartition) -> bool:
    """Whether no transaction is open in it, as far as the consumer was told."""
    state = core.subscription.state_of(partition)
    return state.last_stable_offset == state.high_watermark


def read_everything(
    cluster: SimulatedCluster, partitions: Sequence[TopicPartition], isolation: str
) -> dict[TopicPartition, list[tuple[int, bytes]]]:
    """Each partition, once its writers are done. Raises `TimeoutError` after a minute, as when a transaction hangs."""
    client = cluster.client(f"final reader of {isolation}")
    settings = {
        **client.settings,
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
        **FAST,
    }
    core = ConsumerCore(client.world, read_settings(Scope.CONSUMER, settings, {}), make_member)
    core.assign(partitions)
    core.seek_to_end_of(partitions, beginning=True)
    found: dict[TopicPartition, list[tuple[int, bytes]]] = {partition: [] for partition in partitions}

    def poll() -> None:
        for record in core.poll(1_000):
            found[TopicPartition(record.topic, record.partition)].append((record.offset, bytes(record.value or b"")))
        client.timers.after(_POLL_MS / 1000, poll)

    def is_read() -> bool:
        return all(core.lag(partition) == 0 and _is_stable(core, partition) for partition in partitions)

    poll()
    cluster.simulation.run_until(is_read)
    core.stop()
    client.kill()
    return found
