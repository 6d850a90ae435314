"""Requests that no honest client sends: real ones with damage, random ones, bytes that are none.

Theory of operation: everything comes from one `Random`, so a seed is a run. A case is the bytes of one connection. Most
are real requests, one of every API and version that the node says it serves, filled at random; then damaged as the fuzz
of the codec damages messages, or sent whole. The size in front is mostly put right, so that the damage is met by the
decoder and by what is behind it.
"""

import struct
from random import Random

from ottla.records.builder import BatchBuilder
from ottla.wire.apis import ApiKey
from ottla.wire.frame import encode_request, request_type
from ottla.wire.messages import ProduceRequest
from tests.property.wire.wire_fuzz import HOSTILE
from tests.property.wire.wire_values import RandomMessages

LEFT_OUT = {
    ApiKey.UNREGISTER_BROKER,  # does what it says: the node is then no broker any more
    ApiKey.UPDATE_FEATURES,  # may take the cluster back to an older version, as asked
    ApiKey.CONTROLLED_SHUTDOWN,
}
TOPIC = "abused"


class HostileRequests:
    def __init__(self, seed: int, versions: dict[int, range]) -> None:
        self.random = Random(seed)
        self._messages = RandomMessages(self.random)
        self._apis = [(key, version) for key, span in versions.items() if key not in LEFT_OUT for version in span]

    def case(self) -> bytes:
        match self.random.randrange(20):
            case 0:
                return self.noise()
            case 1:
                return self.framed(self.noise())
            case 2 | 3:
                return self.random_request()
            case 4 | 5:
                return self.damaged_produce()
            case 6:
                return self.half(self.random_request())
            case _:
                return self.damaged(self.random_request())

    def noise(self) -> bytes:
        return self.random.randbytes(self.random.choice((1, 3, 4, 5, 8, 14, 60, 500, 5000)))

    def framed(self, content: bytes) -> bytes:
        return struct.pack(">i", len(content)) + content

    def random_request(self) -> bytes:
        key, version = self.random.choice(self._apis)
        message_type = request_type(key)
        if version not in message_type._schema.versions:
            return self.noise()
        return encode_request(self._messages.message(message_type, version), version, 1, "hostile")

    def damaged_produce(self) -> bytes:
        """Damage inside a batch: magic, checksum, counts, attributes, varints; with the checksum put right or not."""
        batch = bytearray(self.batch())
        for _ in range(self.random.choice((1, 1, 2, 4))):
            at = self.random.randrange(len(batch))
            hostile = self.random.choice(HOSTILE)
            batch[at : at + len(hostile)] = hostile[: len(batch) - at]
        if self.random.random() < 0.5:
            batch = with_checksum(batch)
        return produce(TOPIC, bytes(batch))

    def batch(self) -> bytearray:
        builder = BatchBuilder(compression=self.random.randrange(5), producer_id=self.random.choice((-1, 1, 4000)))
        for _ in range(self.random.choice((1, 2, 10))):
            builder.append(1_700_000_000_000, b"key", self.random.randbytes(50), [("name", b"content")])
        return builder.build()

    def half(self, request: bytes) -> bytes:
        return request[: self.random.randrange(len(request))]

    def damaged(self, request: bytes) -> bytes:
        """Past API key and version, mostly; the size is that of what is left, mostly."""
        damaged = bytearray(request)
        lowest = 8 if self.random.random() < 0.9 else 0
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            at = self.random.randrange(min(lowest, len(damaged)), len(damaged) + 1)
            match self.random.randrange(5):
                case 0 if self.random.random() < 0.3:
                    del damaged[at:]
                case 1:
                    del damaged[at : at + self.random.randrange(1, 9)]
                case 2:
                    damaged[at:at] = self.random.randbytes(self.random.randrange(1, 9))
                case 3:
                    hostile = self.random.choice(HOSTILE)
                    damaged[at : at + len(hostile)] = hostile
                case 4 if at < len(damaged):
                    damaged[at] ^= 1 << self.random.randrange(8)
        if len(damaged) >= 4 and self.random.random() < 0.95:
            damaged[:4] = struct.pack(">i", len(damaged) - 4)
        return bytes(damaged)


def produce(topic: str, batch: bytes, version: int = 9) -> bytes:
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    return encode_request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), version, 7, "hostile")


def with_checksum(batch: bytearray) -> bytearray:
    from crc32c import crc32c

    batch[17:21] = struct.pack(">I", crc32c(bytes(batch[21:])))
    return batch
