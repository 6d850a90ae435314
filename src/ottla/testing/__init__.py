"""What tests are made of, ours and our users': a real node, and a world that does what it is told.

broker                   a broker for everyone's tests: `ottla.testing.Broker`, and several: `ottla.testing.Cluster`
registry                 a schema registry for everyone's tests: `ottla.testing.SchemaRegistry`
pytest_plugin            the same as fixtures
node                     a node in a process of its own
free_ports               ports for nodes that have to know theirs before they start
memory_disk              a disk that crashes, tears and fails; memory_file is one of its files, crash_model is how
memory_network           a network without sockets
clock                    a clock that stands still
step_timers              timers that fire when time is moved
step_workers             disk threads without threads
step_cleaner             a cleaner without a process
host_names               a resolver without a network
step_world               all of these together, for a node or a part of one
sim                      whole nodes in one thread, from a seed
chaos                    what programs saw of a cluster under faults, judged
workload                 all that producers can send, from a seed, and what must be readable afterwards
scripted_brokers         brokers that answer as a test says, for the cores of clients
history                  batches as producers send them, from a seed
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.broker.own_broker import Broker
    from ottla.testing.broker.own_cluster import Cluster
    from ottla.testing.registry.own_registry import SchemaRegistry

__all__ = ["Broker", "Cluster", "SchemaRegistry"]


def __getattr__(name: str) -> object:
    """Those three, imported when asked for: pytest imports this package in projects that never do."""
    if name == "Broker":
        from ottla.testing.broker.own_broker import Broker

        return Broker
    if name == "Cluster":
        from ottla.testing.broker.own_cluster import Cluster

        return Cluster
    if name == "SchemaRegistry":
        from ottla.testing.registry.own_registry import SchemaRegistry

        return SchemaRegistry
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
