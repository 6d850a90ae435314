"""ottla: Apache Kafka's system in Python. See README.md for the tour and ARCHITECTURE.md for the map.

The clients are here under short names, and are loaded when they are first named: a node has no use for them.
"""

TYPE_CHECKING = False  # type checkers take it for true; `typing` would load a dozen modules into every node

if TYPE_CHECKING:
    from typing import Any

    from ottla import admin as admin
    from ottla import aio as aio
    from ottla import errors as errors
    from ottla.base.ids import TopicPartition as TopicPartition
    from ottla.client.admin.topics import NewTopic as NewTopic
    from ottla.client.blocking.admin import Admin as Admin
    from ottla.client.blocking.consumer import Consumer as Consumer
    from ottla.client.blocking.producer import Producer as Producer
    from ottla.client.blocking.schema_registry import SchemaRegistryClient as SchemaRegistryClient
    from ottla.client.consumer.dead_letters import DeadLetters as DeadLetters
    from ottla.client.consumer.group_bond import RebalanceListener as RebalanceListener
    from ottla.client.interceptors import ConsumerInterceptor as ConsumerInterceptor
    from ottla.client.interceptors import ProducerInterceptor as ProducerInterceptor
    from ottla.client.interceptors import RecordToSend as RecordToSend
    from ottla.client.membership.member import LeaveBehaviour as LeaveBehaviour
    from ottla.client.topic_partition import OffsetAndMetadata as OffsetAndMetadata
    from ottla.client.topic_partition import OffsetAndTimestamp as OffsetAndTimestamp
    from ottla.client.topic_partition import RecordMetadata as RecordMetadata
    from ottla.records.kernel import ConsumerRecord as ConsumerRecord

__version__ = "0.1.0"

_PUBLIC = {
    "Admin": "ottla.client.blocking.admin",
    "Consumer": "ottla.client.blocking.consumer",
    "ConsumerInterceptor": "ottla.client.interceptors",
    "ConsumerRecord": "ottla.records.kernel",
    "DeadLetters": "ottla.client.consumer.dead_letters",
    "LeaveBehaviour": "ottla.client.membership.member",
    "NewTopic": "ottla.client.admin.topics",
    "OffsetAndMetadata": "ottla.client.topic_partition",
    "OffsetAndTimestamp": "ottla.client.topic_partition",
    "Producer": "ottla.client.blocking.producer",
    "ProducerInterceptor": "ottla.client.interceptors",
    "RebalanceListener": "ottla.client.consumer.group_bond",
    "RecordMetadata": "ottla.client.topic_partition",
    "RecordToSend": "ottla.client.interceptors",
    "SchemaRegistryClient": "ottla.client.blocking.schema_registry",
    "TopicPartition": "ottla.base.ids",
}
"""Where each public name is."""

_MODULES = ("admin", "aio", "errors")
"""Rooms of public names, so that `import ottla` is enough for `ottla.aio.Producer`."""


def __getattr__(name: str) -> "Any":
    if name not in _PUBLIC and name not in _MODULES:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"ottla.{name}")
    value = globals()[name] = getattr(import_module(_PUBLIC[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
