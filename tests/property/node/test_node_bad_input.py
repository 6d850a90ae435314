"""A node that is sent nonsense stays up, does not grow, and other clients notice nothing.

`OTTLA_TEST_TARGET=apache-kafka` runs the same against Apache Kafka; the limits of memory are ours alone.
"""

import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from ottla.records.builder import BatchBuilder
from ottla.records.compression import compress
from ottla.records.header import HEADER_SIZE, Compression
from ottla.testing.node import RunningNode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response
from ottla.wire.messages import ApiVersionsRequest, CreateTopicsRequest, ProduceResponse
from tests.interop.target import Target
from tests.property.node.hostile_requests import TOPIC, HostileRequests, produce, with_checksum
from tests.property.node.raw_connection import RawConnection
from tests.property.node.witness import Witness

MB = 1 << 20
AT_ONCE = 32
PARKED_S = 0.2
"""As long as a case may keep us waiting. Some ask to wait themselves: a fetch with a long `max.wait.ms`, a group."""


def served(bootstrap: str) -> dict[int, range]:
    with RawConnection(bootstrap) as connection:
        answer = connection.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 3)
    return {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}


def abuse(bootstrap: str, witness: Witness, seed: int, cases: int) -> None:
    """Each case on a connection of its own, many connections at once; the witness is asked again and again."""
    hostile = HostileRequests(seed, served(bootstrap))
    answered = 0
    for number in range(0, cases, AT_ONCE):
        sent = [hostile.case() for _ in range(min(AT_ONCE, cases - number))]
        try:
            with ExitStack() as opened:
                connections = [opened.enter_context(RawConnection(bootstrap)) for _ in sent]
                for connection, data in zip(connections, sent, strict=True):
                    connection.send(data)
                for connection in connections:
                    connection.say_no_more()
                answered += sum(connection.is_answered(within_s=PARKED_S) for connection in connections)
            witness.check(growth_bytes=150 * MB)
        except Exception as problem:
            listing = "\n".join(data.hex() for data in sent)
            raise AssertionError(f"seed {seed}, cases {number} and on: {problem!r}\n{listing}") from problem
    assert answered > cases // 20, "hardly any case got beyond the decoder"


def make_topic(bootstrap: str, **config: str) -> None:
    settings = [
        CreateTopicsRequest.CreatableTopicConfig(name=name.replace("_", "."), value=value)
        for name, value in config.items()
    ]
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=settings)
    with RawConnection(bootstrap) as connection:
        connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)


def not_for_apache_kafka(node: Target) -> None:
    if not isinstance(node, RunningNode):
        pytest.skip("Apache Kafka takes the memory that is announced, and does not survive this with a small heap")


@contextmanager
def many_connections(bootstrap: str, count: int, say: bytes) -> Iterator[list[RawConnection]]:
    with ExitStack() as opened:
        connections = [opened.enter_context(RawConnection(bootstrap)) for _ in range(count)]
        for connection in connections:
            connection.send(say)
        yield connections


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_requests(seed: int, node: Target, witness: Witness) -> None:
    make_topic(node.bootstrap)
    abuse(node.bootstrap, witness, seed, 1500)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_hostile_requests(seed: int, node: Target, witness: Witness) -> None:
    make_topic(node.bootstrap)
    abuse(node.bootstrap, witness, seed, 6000)


def test_a_thousand_connections_that_announce_two_gigabytes(node: Target, witness: Witness) -> None:
    """More than `socket.request.max.bytes`: they are hung up on."""
    with many_connections(node.bootstrap, 1000, struct.pack(">i", 0x7FFFFFFF)) as connections:
        assert all(connection.is_hung_up() for connection in connections)
        witness.check(growth_bytes=50 * MB)


def test_a_thousand_connections_that_announce_what_is_allowed_and_send_nothing(node: Target, witness: Witness) -> None:
    not_for_apache_kafka(node)
    with many_connections(node.bootstrap, 1000, struct.pack(">i", 100 * MB)):
        for _ in range(20):
            witness.check(growth_bytes=50 * MB)


def test_a_thousand_half_requests_and_then_silence(node: Target, witness: Witness) -> None:
    batch = BatchBuilder()
    batch.append(1_700_000_000_000, None, b"x" * 2000)
    request = produce(TOPIC, bytes(batch.build()))
    with many_connections(node.bootstrap, 1000, request[: len(request) // 2]):
        for _ in range(20):
            witness.check(growth_bytes=80 * MB)


def test_large_requests_that_stop_half_way_cost_what_was_sent(node: Target, witness: Witness) -> None:
    not_for_apache_kafka(node)
    with many_connections(node.bootstrap, 20, struct.pack(">i", 100 * MB) + bytes(MB)):
        for _ in range(20):
            witness.check(growth_bytes=20 * 8 * MB + 50 * MB)


@pytest.mark.parametrize("size", [-1, -(1 << 31), 0x7FFFFFFF, 100 * MB + 1])
def test_a_size_out_of_bounds_ends_the_connection(size: int, node: Target, witness: Witness) -> None:
    with RawConnection(node.bootstrap) as connection:
        connection.send(struct.pack(">i", size) + b"more")
        assert connection.is_hung_up()
    witness.check()


@pytest.mark.parametrize("count", [0x7FFFFFFF, 0x10000000, 100_000])
def test_an_absurd_count_ends_the_connection(count: int, node: Target, witness: Witness) -> None:
    """A Metadata request, version 1, of so many topics, of which not one is there."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", count)
    with many_connections(node.bootstrap, 50, struct.pack(">i", len(body)) + body) as connections:
        assert all(connection.is_hung_up() for connection in connections)
    witness.check(growth_bytes=30 * MB)


def answer_to(bootstrap: str, request: bytes) -> ErrorCode | None:
    """The error code for the one partition of a Produce request; None when the node hung up."""
    with RawConnection(bootstrap) as connection:
        connection.send(request)
        frame = connection.read_frame()
    if frame is None:
        return None
    _, response = decode_response(ProduceResponse, frame, 9)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def a_batch(compression: int = Compression.NONE) -> bytearray:
    builder = BatchBuilder(compression=compression)
    builder.append(1_700_000_000_000, b"key", b"value" * 20)
    return builder.build()


def test_a_wrong_checksum_is_told(node: Target, witness: Witness) -> None:
    make_topic(node.bootstrap)
    batch = a_batch()
    batch[17] ^= 1
    assert answer_to(node.bootstrap, produce(TOPIC, bytes(batch))) == ErrorCode.CORRUPT_MESSAGE
    witness.check()


@pytest.mark.parametrize("magic", [0, 1, 3, 127])
def test_a_wrong_magic_is_refused(magic: int, node: Target, witness: Witness) -> None:
    make_topic(node.bootstrap)
    batch = a_batch()
    batch[16] = magic
    answer = answer_to(node.bootstrap, produce(TOPIC, bytes(batch)))
    assert answer in (None, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_REQUEST)
    witness.check()


def a_bomb(compression: int) -> bytes:
    """A batch that says it has one record, and is a gigabyte of zeros when unpacked.

    Where the format allows it, of many members or frames: each is small, and a reader goes on from one to the next.
    """
    unpacked = 64 * MB
    packed = compress(compression, bytes(unpacked), None)
    if compression in (Compression.GZIP, Compression.ZSTD, Compression.LZ4):
        packed = bytes(packed) * (1024 * MB // unpacked)
    batch = a_batch(compression)[:HEADER_SIZE] + packed
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    return bytes(with_checksum(batch))


@pytest.mark.parametrize("compression", [kind for kind in Compression if kind != Compression.NONE], ids=str)
def test_vulnerability_a_compression_bomb_is_refused(compression: Compression, node: Target, witness: Witness) -> None:
    make_topic(node.bootstrap, max_message_bytes="10000000")
    bomb = a_bomb(compression)
    answers = [answer_to(node.bootstrap, produce(TOPIC, bomb)) for _ in range(2)]
    assert set(answers) <= {
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    witness.check(growth_bytes=200 * MB)
