"""A consumer's core over scripted brokers whose partitions are lists of batches."""

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.records.builder import BatchBuilder
from ottla.testing.scripted_brokers import KEEP
from ottla.wire.messages import (
    FetchResponse,
    FindCoordinatorResponse,
    ListOffsetsResponse,
    OffsetForLeaderEpochResponse,
)

T0 = TopicPartition("clicks", 0)
T1 = TopicPartition("clicks", 1)


def batch(base_offset, *values, epoch=0, **options):
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=epoch, **options)
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return bytes(builder.build())


class Logs:
    """What the brokers have. A fetch beyond the end is kept, as a long poll would be."""

    def __init__(self, brokers):
        self.brokers = brokers
        self.batches = {}
        self.start = {}
        self.errors = {}
        self.session_id = 77
        brokers.answer("Fetch", self.fetch)
        brokers.answer("ListOffsets", self.list_offsets)
        brokers.answer("OffsetForLeaderEpoch", self.epoch_end)
        self.epoch_ends = {}

    def append(self, partition, *values, epoch=0, **options):
        base_offset = self.end(partition)
        made = base_offset, base_offset + len(values), batch(base_offset, *values, epoch=epoch, **options)
        self.batches.setdefault(partition, []).append(made)

    def end(self, partition):
        batches = self.batches.get(partition, [])
        return batches[-1][1] if batches else self.start.get(partition, 0)

    def fetch(self, node_id, version, request):
        self.sessions = getattr(self, "sessions", {})
        if request.session_epoch == -1 and not request.topics:
            return FetchResponse()
        known = {} if request.session_epoch <= 0 else self.sessions[node_id]
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                known.pop(TopicPartition(self.name(topic), index), None)
        for topic in request.topics:
            for one in topic.partitions:
                known[TopicPartition(self.name(topic), one.partition)] = one
        self.sessions[node_id] = known
        answers, left = [], request.max_bytes
        for partition, one in known.items():
            answer = self.partition(partition, one, node_id, request, left)
            if answer is not None:
                answers.append(answer)
                left -= len(answer[1].records or b"")
        if not answers and request.session_epoch != 0:
            return KEEP
        response = self.response(answers, version)
        if request.session_epoch == -1:
            response.session_id = 0
        return response

    def name(self, topic):
        return topic.topic or next(
            name for name in self.brokers.topics if self.brokers.topic_id(name) == topic.topic_id
        )

    def response(self, answers, version):
        topics = {}
        for partition, answer in answers:
            topics.setdefault(partition.topic, []).append(answer)
        named = {"topic_id": self.brokers.topic_id} if version >= 13 else {"topic": str}
        return FetchResponse(
            session_id=self.session_id,
            responses=[
                FetchResponse.FetchableTopicResponse(
                    partitions=found, **{field: make(name) for field, make in named.items()}
                )
                for name, found in topics.items()
            ],
        )

    def partition(self, partition, asked, node_id, request, left):
        error = self.errors.get((partition, node_id)) or self.errors.get(partition)
        if error is not None:
            return partition, FetchResponse.PartitionData(
                partition_index=partition.partition, **(error if isinstance(error, dict) else {"error_code": error})
            )
        if not self.start.get(partition, 0) <= asked.fetch_offset <= self.end(partition):
            return partition, FetchResponse.PartitionData(partition_index=partition.partition, error_code=1)
        data = self.records(
            partition, asked.fetch_offset, min(asked.partition_max_bytes, left), left == request.max_bytes
        )
        if not data and request.session_epoch != 0:
            return None
        return partition, FetchResponse.PartitionData(
            partition_index=partition.partition,
            high_watermark=self.end(partition),
            last_stable_offset=self.end(partition),
            log_start_offset=self.start.get(partition, 0),
            records=data,
        )

    def records(self, partition, offset, size, is_first):
        """As Kafka's brokers: cut off anywhere, but for the first batch of a response, which comes whole."""
        batches = [made for _, end, made in self.batches.get(partition, []) if end > offset]
        if not batches or (len(batches[0]) > size and not is_first):
            return b""
        return b"".join(batches)[: max(size, len(batches[0]))]

    def epoch_end(self, node_id, version, request):
        [[asked]] = [topic.partitions for topic in request.topics]
        partition = TopicPartition(request.topics[0].topic, asked.partition)
        epoch, end = self.epoch_ends.get(partition, (asked.leader_epoch, self.end(partition)))
        answer = OffsetForLeaderEpochResponse.EpochEndOffset(
            partition=asked.partition, leader_epoch=epoch, end_offset=end
        )
        topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=partition.topic, partitions=[answer])
        return OffsetForLeaderEpochResponse(topics=[topic])

    def list_offsets(self, node_id, version, request):
        topics = []
        for topic in request.topics:
            found = []
            for one in topic.partitions:
                partition = TopicPartition(topic.name, one.partition_index)
                offset = self.end(partition) if one.timestamp == -1 else self.start.get(partition, 0)
                found.append(
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, offset=offset, timestamp=-1, leader_epoch=0
                    )
                )
            topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=found))
        return ListOffsetsResponse(topics=topics)


class Bench:
    """A core, its brokers, and the calls that a face would make."""

    def __init__(self, brokers, make_member=None, **settings):
        self.brokers = brokers
        self.logs = Logs(brokers)
        defaults = {"auto_offset_reset": "earliest"}
        found = read_settings(Scope.CONSUMER, {"bootstrap.servers": brokers.bootstrap}, {**defaults, **settings})
        self.core = ConsumerCore(brokers.world, found, make_member)

    def poll(self, most=500):
        records = self.core.poll(most)
        self.brokers.run()
        return records or self.core.poll(most)

    def values(self, most=500):
        return [record.value for record in self.poll(most)]

    def call(self, coroutine, advance_ms=0):
        promise = spawn(coroutine)
        self.brokers.run()
        if not promise.is_done and advance_ms:
            self.brokers.advance(advance_ms)
        return promise.value()

    def end_long_polls(self):
        """What waits at the brokers is answered: with what has come, or with nothing."""

        def answer(node_id, version, request):
            response = self.logs.fetch(node_id, version, request)
            return self.logs.response([], version) if response is KEEP else response

        self.brokers.release(answer)
        self.brokers.run()

    def asked_offsets(self):
        """Of every fetch the offsets that it named, by partition."""
        return [
            {TopicPartition(self.logs.name(topic), one.partition): one.fetch_offset}
            for request in self.brokers.asked("Fetch")
            for topic in request.topics
            for one in topic.partitions
        ]


def coordinator_is(node_id):
    def find(_, version, request):
        keys = request.coordinator_keys or [request.key]
        one = {"node_id": node_id, "host": f"broker-{node_id}", "port": 9092}
        if version < 4:
            return FindCoordinatorResponse(**one)
        return FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key=keys[0], **one)])

    return find
