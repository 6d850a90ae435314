"""What it costs to look after what clients may do, with ten thousand access rules: microseconds a decision, a request.

    remembered   a decision that was made before: what a client asks with each request
    first        a decision that was not, of a principal with few rules among many, and after a change of the rules
    produce …    a whole check around a handler that does nothing: what a request pays for it

Run as `python bench/access.py`. The aim is less than 5 us a request.
"""

from functools import partial
from time import perf_counter, process_time
from typing import Any

from compare import print_table

from ottla.apis.table import APIS
from ottla.base.ids import Uuid
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.security.acls.authorizer import Authorizer
from ottla.serving.access.denials import Denials
from ottla.serving.access.gate import Gate
from ottla.serving.node_settings import NodeSettings
from ottla.wire.acls import AclOperation, AclPermission, AclResource, PatternType
from ottla.wire.apis import ApiKey
from ottla.wire.messages import (
    AccessControlEntryRecord,
    FetchRequest,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
)

RULES = 10_000
ROUNDS, TIMES = 7, 20_000
HOST = "10.0.0.1"


def rule(number: int) -> AccessControlEntryRecord:
    """Of a thousand users: literal and prefixed names, and one rule in a hundred denies."""
    operations = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)
    return AccessControlEntryRecord(
        id=Uuid(number.to_bytes(16, "big")),
        resource_type=AclResource.TOPIC if number % 3 else AclResource.GROUP,
        resource_name=f"team-{number % 500}-{number}" if number % 4 else f"team-{number % 500}-",
        pattern_type=PatternType.LITERAL if number % 4 else PatternType.PREFIXED,
        principal=f"User:user-{number % 1000}",
        host="*",
        operation=operations[number % 3],
        permission_type=AclPermission.DENY if number % 100 == 99 else AclPermission.ALLOW,
    )


def micros(call: Any, times: int = TIMES) -> float:
    """Of the processor, in the quietest round: what others do on the machine is no part of it."""
    rounds = []
    for _ in range(ROUNDS):
        began = process_time()
        for _ in range(times):
            call()
        rounds.append((process_time() - began) / times * 1e6)
    return min(rounds)


def main() -> None:
    records = {number: rule(number) for number in range(RULES)}
    records[RULES] = AccessControlEntryRecord(
        id=Uuid(bytes(16)),
        resource_type=AclResource.TOPIC,
        resource_name="orders",
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.ALL,
        permission_type=AclPermission.ALLOW,
    )
    records[RULES + 1] = AccessControlEntryRecord(
        id=Uuid(bytes(15) + b"g"),
        resource_type=AclResource.GROUP,
        resource_name="readers",
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermission.ALLOW,
    )
    authorizer = Authorizer()
    began = perf_counter()
    authorizer.load(records)
    loaded_ms = (perf_counter() - began) * 1e3
    asked = "User:alice", HOST, AclOperation.WRITE, AclResource.TOPIC, "orders"
    assert authorizer.allows(*asked)

    def first() -> None:
        authorizer._remembered.clear()
        authorizer.allows(*asked)

    rows = [
        ("load all rules (ms)", loaded_ms),
        ("remembered decision", micros(lambda: authorizer.allows(*asked))),
        ("first decision", micros(first)),
    ]
    given = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
    settings = NodeSettings(1, parse(Scope.BROKER, given).values)
    gate = Gate(authorizer, Denials(perf_counter), MetadataImage(), settings)
    client = ClientConnection(1, "PLAINTEXT", HOST, "User:alice")
    produced = ProduceRequest.TopicProduceData(name="orders", partition_data=[])
    fetched = FetchRequest.FetchTopic(topic="orders", partitions=[])
    topic = MetadataRequest.MetadataRequestTopic(name="orders")
    for name, key, version, request in (
        ("produce", ApiKey.PRODUCE, 9, ProduceRequest(acks=1, transactional_id=None, topic_data=[produced])),
        ("fetch", ApiKey.FETCH, 12, FetchRequest(replica_id=-1, session_epoch=-1, topics=[fetched])),
        ("heartbeat", ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id="readers", member_id="m")),
        ("metadata", ApiKey.METADATA, 12, MetadataRequest(topics=[topic], allow_auto_topic_creation=False)),
    ):
        handed_on: list[Any] = []
        row = APIS[key]
        assert row.broker is not None
        handle = gate.around(row, row.broker, lambda _context, request, _respond, to=handed_on: to.append(request))
        context = RequestContext(key, version, 1, "bench", client, 0.0, 100)
        handle(context, request, print)
        assert len(handed_on) == 1, "it is allowed"
        rows.append((f"check of a {name} request", micros(partial(handle, context, request, print))))
    print_table([f"with {RULES:,} access rules", "us"], [(name, f"{value:.2f}") for name, value in rows])


if __name__ == "__main__":
    main()
