"""What a request costs from the dispatcher on, beside the log's own work and without a socket.

    dispatch  the request whose handler does least: SaslHandshake, out of turn
    produce   one batch of ten 100-byte records: the handler, and of that the check of the batch and the append
    fetch     up to 1 MB from the end, the middle and, with nothing new, of a session of many partitions

Decoding and encoding are `bench/codec.py`'s. Run as `python bench/handlers.py`; with `--profile produce` or
`--profile fetch` it prints where the time goes instead. OTTLA_BENCH_DIR says where the log is (default: a temporary
directory).
"""

import asyncio
import cProfile
import os
import pstats
import shutil
import sys
import tempfile
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter

from compare import print_table

from ottla.base.ids import Uuid
from ottla.broker.broker import Broker
from ottla.broker.dispatch import dispatcher
from ottla.broker.partitions.topic_settings import SettingsOfTopics
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.log.log_dirs import LogDirs
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.real_world import SystemClock, real_world
from ottla.records.builder import build_batch
from ottla.records.validate import validate_produced
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message
from ottla.wire.messages import FetchRequest, PartitionRecord, ProduceRequest, SaslHandshakeRequest, TopicRecord

ROUNDS = 9
CALLS = 5_000
IDLE_PARTITIONS = 100
TOPIC_ID = Uuid(b"bench".ljust(16, b"."))
CLIENT = ClientConnection(1, "PLAINTEXT", "127.0.0.1")


def make_broker(directory: str, loop: asyncio.AbstractEventLoop) -> Broker:
    required = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
    config = parse(Scope.BROKER, required).values
    image, delta, world = MetadataImage(), MetadataDelta(), real_world(loop)
    image.replay(TopicRecord(name="bench", topic_id=TOPIC_ID), delta)
    for index in range(1 + IDLE_PARTITIONS):
        image.replay(
            PartitionRecord(
                partition_id=index, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader=1, directories=(bytes(16),)
            ),
            delta,
        )
    topics = SettingsOfTopics(config)
    logs = LogDirs(world.disk, [directory], world.clock, config_of=lambda topic: topics.of({}).log)
    broker = Broker(
        node_id=1,
        cluster_id="bench",
        config=config,
        image=image,
        logs=logs,
        world=world,
        controller=None,  # type: ignore[arg-type]
        settings=topics,
    )
    broker.start()
    idle = loop.create_future()
    world.workers.when_idle(lambda: idle.set_result(None))
    loop.run_until_complete(idle)
    assert len(broker.partitions) == 1 + IDLE_PARTITIONS
    return broker


def context_of(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version, 1, "bench", CLIENT, 0.0)


def produce_request(records: bytearray) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(records))
    topic = ProduceRequest.TopicProduceData(topic_id=TOPIC_ID, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def fetch_request(offset: int, partitions: range, **session: int) -> FetchRequest:
    wanted = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in partitions
    ]
    topics = [FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=wanted)] if wanted else []
    return FetchRequest(max_bytes=50 << 20, min_bytes=1, max_wait_ms=0, topics=topics, **session)


class Cases:
    """Each case is one call, to be timed many times."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.now_ms = SystemClock().now_ms()
        self.batch = build_batch(self.now_ms, None, [bytes(100)] * 10)
        self.request = produce_request(self.batch)
        self.produce_context = context_of(ApiKey.PRODUCE, 13)
        self.fetch_context = context_of(ApiKey.FETCH, 17)
        self.handshake_context = context_of(ApiKey.SASL_HANDSHAKE, 1)
        self.handshake = SaslHandshakeRequest(mechanism="PLAIN")
        self.handle = dispatcher(broker)
        self.partition = broker.partitions["bench", 0]
        self.other_log = broker.partitions["bench", IDLE_PARTITIONS].log
        self.replies: list[Message | None] = []
        self.session_id, self.session_epoch = 0, 0

    def reply(self, message: Message | None) -> None:
        self.replies = [message]

    def dispatch(self) -> None:
        self.handle(self.handshake_context, self.handshake, self.reply)

    def produce(self) -> None:
        self.batch[0:8] = bytes(8)  # as a client sends it: an append has assigned the offset in place
        self.handle(self.produce_context, self.request, self.reply)

    def validate(self) -> None:
        self.batch[0:8] = bytes(8)
        validate_produced(memoryview(self.batch), self.partition.settings.rules, self.now_ms)

    def append(self) -> None:
        self.other_log.append_as_leader(self.batch, 0)

    def fetch_at_end(self) -> None:
        self._fetch(self.partition.log.high_watermark - 10)

    def fetch_in_middle(self) -> None:
        self._fetch(self.partition.log.high_watermark // 2 // 10 * 10)

    def _fetch(self, offset: int) -> None:
        request = fetch_request(offset, range(1), session_epoch=-1)
        self.handle(self.fetch_context, request, self.reply)

    def fetch_session(self) -> None:
        if not self.session_id:
            request = fetch_request(0, range(1, IDLE_PARTITIONS), session_epoch=0)
            self.handle(self.fetch_context, request, self.reply)
            self.session_id, self.session_epoch = self.replies[0].session_id, 0  # type: ignore[union-attr]
        self.session_epoch += 1
        request = fetch_request(0, range(0), session_id=self.session_id, session_epoch=self.session_epoch)
        self.handle(self.fetch_context, request, self.reply)


def microseconds(call: Callable[[], None]) -> list[float]:
    call()
    rounds: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((perf_counter() - start) / CALLS * 1e6)
    return rounds


def run(cases: Cases) -> None:
    rows: list[list[str]] = []
    for name, call in (
        ("dispatch", cases.dispatch),
        ("produce: handler", cases.produce),
        ("  of which the check", cases.validate),
        ("  of which the append", cases.append),
        ("fetch: at the end", cases.fetch_at_end),
        ("fetch: in the middle", cases.fetch_in_middle),
        (f"fetch: {IDLE_PARTITIONS} idle partitions", cases.fetch_session),
    ):
        found = microseconds(call)
        low, _, high = quantiles(found, n=4)
        rows.append([name, f"{median(found):.1f} µs", f"{low:.1f}-{high:.1f}"])
    print_table(["case", "median", "quartiles"], rows)


def profile(call: Callable[[], None]) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(CALLS):
        call()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    where = os.environ.get("OTTLA_BENCH_DIR") or tempfile.mkdtemp(prefix="ottla-bench-")
    loop = asyncio.new_event_loop()
    try:
        cases = Cases(make_broker(where, loop))
        if "--profile" in sys.argv:
            profile({"produce": cases.produce, "fetch": cases.fetch_at_end}[sys.argv[-1]])
        else:
            run(cases)
    finally:
        loop.close()
        if "OTTLA_BENCH_DIR" not in os.environ:
            shutil.rmtree(where)


if __name__ == "__main__":
    main()
