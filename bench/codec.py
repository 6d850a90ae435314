"""Encoding and decoding beside kio (a codec with a native decoder), in one process: `python bench/codec.py`.

Both decode the same bytes; each encodes its own objects to those bytes. Ratios are ours over kio's: lower is better.
Which of our decoders ran is printed; the generated one, which serves where there was no C compiler, has a line of its
own. Importing is timed in fresh interpreters.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from io import BytesIO
from statistics import median

from compare import Comparison, compare, print_table, seconds
from kio.serial import entity_reader, entity_writer

from ottla.wire import compiler, decoding
from ottla.wire.codec import decode, encode
from ottla.wire.message import Message
from ottla.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    ProduceRequest,
    ProduceResponse,
)

DECODE_MOST, DECODE_REST, ENCODE_TARGET = 1.0, 1.3, 0.2
METADATA_ENCODE_SECONDS = 0.002
IMPORT_SECONDS = 0.03


def main() -> None:
    rows, decodes, generated = [], [], []
    for message in samples():
        name, version = type(message).__name__, message._schema.versions[-1]
        data = encode(message, version)
        kio_class = kio_type(name, version)
        read, write = entity_reader(kio_class), entity_writer(kio_class)
        theirs, _ = read(data, 0)
        assert kio_encode(write, theirs) == data, f"kio disagrees on {name}"

        decoded = compare(partial(decode, type(message), data, version), partial(read, data, 0))
        encoded = compare(partial(encode, message, version), partial(kio_encode, write, theirs))
        decodes.append(decoded.ratio)
        rows.append(row(f"decode {name} v{version}", decoded, DECODE_REST))
        rows.append(row(f"encode {name} v{version}", encoded, ENCODE_TARGET))
        pure = decoding.compile_decoder(type(message), version)
        generated.append(compare(partial(pure, data, 0), partial(read, data, 0), rounds=7).ratio)
        if isinstance(message, MetadataResponse):
            metadata_encode = encoded.ours
    print_table(("message", "ours", "kio", "ratio", "spread", "target", "result"), sorted(rows))
    faster = sum(ratio <= DECODE_MOST for ratio in decodes)
    print(
        f"\ndecoded no slower than kio: {faster} of {len(decodes)} (target: most) {verdict(2 * faster > len(decodes))}"
    )
    met = verdict(metadata_encode < METADATA_ENCODE_SECONDS)
    print(f"Metadata of 1,000 partitions encoded in {seconds(metadata_encode)} (target: under 2 ms) {met}")
    print(f"the decoder that ran is {compiler.compile_decoder.__module__}; the generated one takes", end=" ")
    print(f"{min(generated):.1f} to {max(generated):.1f} times kio's time, {median(generated):.1f} in the middle")
    for statement in ("import ottla.wire", "from ottla.wire import decode_request, encode_response"):
        cost = import_seconds(statement)
        print(f"{statement}: {seconds(cost)} (target: at most 30 ms) {verdict(cost <= IMPORT_SECONDS)}")


def samples() -> Iterator[Message]:
    records = bytes(range(256)) * 4
    topic_id = bytes(range(16))
    yield ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                topic_id=topic_id,
                partition_data=[ProduceRequest.PartitionProduceData(index=i, records=records) for i in range(3)],
            )
            for _ in range(2)
        ],
    )
    yield ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                topic_id=topic_id,
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(index=i, base_offset=10**6 + i, log_start_offset=0)
                    for i in range(3)
                ],
            )
            for _ in range(2)
        ]
    )
    yield FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchRequest.FetchPartition(partition=i, fetch_offset=10**6, partition_max_bytes=1 << 20)
                    for i in range(10)
                ],
            )
            for _ in range(10)
        ],
    )
    yield FetchResponse(
        session_id=77,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic_id=topic_id,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=i, high_watermark=10**6, last_stable_offset=10**6, records=records
                    )
                    for i in range(10)
                ],
            )
            for _ in range(10)
        ],
    )
    yield MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=f"topic-{i}") for i in range(100)])
    yield metadata_response(topics=100, partitions=10)
    yield JoinGroupRequest(
        group_id="orders",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=member_id(0),
        protocol_type="consumer",
        protocols=[
            JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=bytes(80)) for name in ("range", "sticky")
        ],
    )
    yield JoinGroupResponse(
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader=member_id(0),
        member_id=member_id(0),
        members=[
            JoinGroupResponse.JoinGroupResponseMember(member_id=member_id(i), metadata=bytes(80)) for i in range(20)
        ],
    )
    yield OffsetCommitRequest(
        group_id="orders",
        generation_id_or_member_epoch=3,
        member_id=member_id(0),
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=i, committed_offset=10**6 + i, committed_leader_epoch=4, committed_metadata=""
                    )
                    for i in range(10)
                ],
            )
            for _ in range(5)
        ],
    )
    yield OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                topic_id=topic_id,
                partitions=[OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=i) for i in range(10)],
            )
            for _ in range(5)
        ]
    )
    yield ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1")
    yield ApiVersionsResponse(
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=9) for key in range(80)],
        finalized_features_epoch=42,
    )


def metadata_response(topics: int, partitions: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=i, host=f"broker-{i}.example.com", port=9092)
            for i in range(3)
        ],
        cluster_id="5L6g3nShT-eMCtK--X86sw",
        controller_id=1,
        topics=[
            MetadataResponse.MetadataResponseTopic(
                name=f"topic-{topic}",
                topic_id=topic.to_bytes(16, "big", signed=False),
                partitions=[
                    MetadataResponse.MetadataResponsePartition(
                        partition_index=i,
                        leader_id=i % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for i in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def member_id(number: int) -> str:
    return f"consumer-orders-{number:02}-0a0b0c0d-0000-4000-8000-000000000000"


def kio_type(name: str, version: int) -> type:
    kind = "request" if name.endswith("Request") else "response"
    api = "".join("_" + letter.lower() if letter.isupper() else letter for letter in name.removesuffix(kind.title()))
    return getattr(import_module(f"kio.schema{'.' + api.lstrip('_')}.v{version}.{kind}"), name)  # type: ignore[no-any-return]


def kio_encode(write: Callable[[BytesIO, object], None], value: object) -> bytes:
    buffer = BytesIO()
    write(buffer, value)
    return buffer.getvalue()


def import_seconds(statement: str) -> float:
    """The middle of several fresh interpreters, on top of what starting one costs."""
    program = f"from time import perf_counter as now; start = now(); {statement}; print(now() - start)"
    command = [sys.executable, "-c", program]
    return median(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(9))


def row(label: str, result: Comparison, target: float) -> tuple[str, ...]:
    return (
        label,
        seconds(result.ours),
        seconds(result.theirs),
        f"{result.ratio:.2f}",
        result.spread,
        f"{target:.2f}",
        verdict(result.ratio <= target),
    )


def verdict(met: bool) -> str:
    return "pass" if met else "FAIL"


if __name__ == "__main__":
    main()
