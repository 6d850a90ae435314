"""Partitions as a broker keeps them, with what it knows of idempotent producers, behind scripted brokers."""

from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ottla.client.errors import KafkaError
from ottla.client.producer.append import Delivery
from ottla.client.producer.core import ProducerCore
from ottla.client.promise import Promise
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.records.batch import checksum_matches, read_header
from ottla.records.reader import read_records
from ottla.testing.scripted_brokers import ScriptedBrokers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import InitProducerIdResponse, ProduceResponse

PartitionAnswer = ProduceResponse.PartitionProduceResponse
PRODUCER_ID = 4000


class WrittenLogs:
    """Answers Produce as a leader does: appends in order, knows what it has already, refuses what leaves a gap."""

    def __init__(self, brokers: ScriptedBrokers) -> None:
        self.values: dict[tuple[str, int], list[bytes]] = {}
        self.headers: dict[tuple[str, int], list[Any]] = {}
        self._known: dict[tuple[str, int, int], tuple[int, deque[tuple[int, int, int]]]] = {}
        self._names = {brokers.topic_id(name): name for name in brokers.topics}
        brokers.answer("Produce", self.produce)
        brokers.answer(
            "InitProducerId", InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=0, error_code=0)
        )

    def produce(self, node_id: int, version: int, request: Any) -> ProduceResponse:
        return answer_produce(version, request, lambda name, index, data: self.append(name, index, bytes(data)), self)

    def name(self, topic: Any) -> str:
        return topic.name or self._names[topic.topic_id]

    def append(self, topic: str, partition: int, data: bytes) -> PartitionAnswer:
        header = read_header(data)
        assert checksum_matches(data, 0, header), "a batch whose checksum is wrong"
        log = self.values.setdefault((topic, partition), [])
        if header.producer_id >= 0:
            code, offset = self._judge(topic, partition, header, len(log))
            if code is not None:
                return PartitionAnswer(index=partition, error_code=code, base_offset=offset)
        base_offset = len(log)
        self.headers.setdefault((topic, partition), []).append(header)
        log.extend(record.value or b"" for record in read_records(data))
        return PartitionAnswer(index=partition, base_offset=base_offset, log_start_offset=0)

    def _judge(self, topic: str, partition: int, header: Any, end: int) -> tuple[int | None, int]:
        key = (topic, partition, header.producer_id)
        epoch, batches = self._known.get(key, (-1, deque(maxlen=5)))
        if header.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        is_new = epoch < 0
        if header.producer_epoch > epoch:
            epoch, batches = header.producer_epoch, deque(maxlen=5)
            if header.base_sequence != 0 and not is_new:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        for sequence, count, offset in batches:
            if (sequence, count) == (header.base_sequence, header.record_count):
                return ErrorCode.NONE, offset
        expected = (batches[-1][0] + batches[-1][1]) & 0x7FFFFFFF if batches else 0
        if header.base_sequence != expected and not is_new:  # of a producer that it knows nothing of, it takes any
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        batches.append((header.base_sequence, header.record_count, end))
        self._known[key] = (epoch, batches)
        return None, -1

    def forget_producers(self) -> None:
        self._known.clear()


def answer_produce(
    version: int, request: Any, answer: Callable[[str, int, Any], PartitionAnswer], logs: WrittenLogs
) -> ProduceResponse:
    """A response with what `answer` says for each partition, topics named as the request names them."""
    responses = []
    for topic in request.topic_data:
        name = logs.name(topic)
        answers = [answer(name, one.index, one.records) for one in topic.partition_data]
        response = ProduceResponse.TopicProduceResponse(partition_responses=answers)
        if version > 12:
            response.topic_id = topic.topic_id
        else:
            response.name = name
        responses.append(response)
    return ProduceResponse(responses=responses)


def refusing(logs: WrittenLogs, code: int, **fields: Any) -> Callable[..., ProduceResponse]:
    """An answer to Produce: nothing is written, and each partition says so."""

    def refuse(node_id: int, version: int, request: Any) -> ProduceResponse:
        return answer_produce(
            version, request, lambda _, index, __: PartitionAnswer(index=index, error_code=code, **fields), logs
        )

    return refuse


class TestWaiting:
    """Deliveries are looked at when the scripted brokers have come to rest."""

    __test__ = False
    lock = nullcontext()

    def nudge(self) -> None:
        """Callbacks run at once."""

    def wait(self, promise: Promise[Any], timeout_s: float | None) -> None:
        raise AssertionError("nothing waits in a transcript")

    async def awaited(self, promise: Promise[Any]) -> None:
        await promise  # type: ignore[misc]

    def call_back(self, callback: Callable[[Any], None], argument: Any) -> None:
        callback(argument)


class Producing:
    """A producer's core in front of scripted brokers."""

    def __init__(self, brokers: ScriptedBrokers, **settings: object) -> None:
        self.brokers = brokers
        read = read_settings(Scope.PRODUCER, {"bootstrap.servers": brokers.bootstrap}, settings)
        self.core = ProducerCore(brokers.world, read, TestWaiting())

    def send(self, value: bytes = b"v", topic: str = "clicks", key: bytes | None = None, **options: Any) -> Delivery:
        """As a face does it; what has to be waited for is let happen."""
        arguments = (
            topic,
            value,
            key,
            options.get("partition"),
            options.get("timestamp_ms"),
            options.get("headers"),
            options.get("on_delivery"),
        )
        for _ in range(20):
            delivery = self.core.appender.append(*arguments) or self.core.send(*arguments)
            if not isinstance(delivery, Promise):
                return delivery
            for _ in range(50):
                self.brokers.advance(20)
                if delivery.is_done:
                    break
            delivery.value()
        raise AssertionError("the record never got in")

    def flush(self) -> None:
        self.core.flush()
        self.brokers.run()


def error_of(delivery: Delivery) -> type[KafkaError] | None:
    assert delivery.done(), "not delivered yet"
    error = delivery.exception()
    assert error is None or isinstance(error, KafkaError)
    return None if error is None else type(error)
