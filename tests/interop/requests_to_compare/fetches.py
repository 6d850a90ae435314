"""Reading, with and without a session (KIP-227)."""

from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.messages import FetchRequest
from tests.interop.compared_nodes import SESSION, Settle, Step, ask, topic_id
from tests.interop.requests_to_compare.batches import BY_ID, batch, produce
from tests.interop.requests_to_compare.topics import create, topic

NOBODYS_ID = Uuid(bytes(range(16)))
EDGES = (4, 11, 12, 13, 18)
"""The oldest, the last that names topics, with tags, the first with ids, and the newest."""


def _name(topic: str, version: int) -> dict[str, Any]:
    if version < BY_ID:
        return {"topic": topic}
    return {"topic_id": topic_id(topic) if topic != "nobody" else NOBODYS_ID}


def fetch(
    version: int,
    offset: int = 0,
    topic: str = "filled",
    index: int = 0,
    *,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    asked = FetchRequest.FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    topics = [FetchRequest.FetchTopic(**_name(topic, version), partitions=[asked])]
    return FetchRequest(max_bytes=max_bytes, topics=topics, **{"session_epoch": -1, **fields})


def _filled() -> list[Step]:
    return [
        *create(("filled", 2), topic("zstd", configs={"compression.type": "zstd"})),
        Settle(("filled", "zstd")),
        *ask(produce(batch(b"a" * 100), "zstd"), 12),
        *(step for _ in range(3) for step in ask(produce(batch(b"a" * 100), "filled"), 12)),
        *ask(produce(batch(b"z" * 1000), "filled", 1), 12),
    ]


def fetches() -> list[Step]:
    steps = _filled()
    for version in EDGES:
        for request in (
            *(fetch(version, offset) for offset in (0, 1, 2, 3, 4, -1)),
            fetch(version, topic="nobody"),
            fetch(version, index=9),
            fetch(version, isolation_level=1),
            fetch(version, 3, max_wait_ms=50, min_bytes=1),
            *(fetch(version, partition_max_bytes=limit) for limit in (1, 173, 174, 400)),
            *(fetch(version, max_bytes=limit) for limit in (1, 173, 174, 400)),
        ):
            steps += ask(request, version)
    for version in (12, 18):
        for request in (
            fetch(version, current_leader_epoch=0),
            fetch(version, current_leader_epoch=5),
            fetch(version, 1, last_fetched_epoch=0),
            fetch(version, 1, last_fetched_epoch=5),
            fetch(version, session_id=77, session_epoch=4),
            fetch(version, session_id=77, session_epoch=-1),
        ):
            steps += ask(request, version)
    for version in (4, 9, 10, 18):
        steps += ask(fetch(version, topic="zstd"), version)
        steps += ask(fetch(version, 99, topic="zstd"), version)
    return [*steps, *ask(fetch(12, replica_id=9), 12), *ask(fetch(12, replica_id=-2), 12)]


def sessions() -> list[Step]:
    steps = _filled()
    for version in (7, 12, 13, 18):

        def step(
            epoch: int,
            offsets: dict[str, dict[int, int]],
            forgotten: dict[str, tuple[int, ...]],
            version: int = version,
        ) -> list[Step]:
            request = FetchRequest(
                max_bytes=1 << 20,
                session_id=SESSION if epoch else 0,
                session_epoch=epoch,
                topics=[
                    FetchRequest.FetchTopic(
                        **_name(topic, version),
                        partitions=[
                            FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
                            for index, offset in partitions.items()
                        ],
                    )
                    for topic, partitions in offsets.items()
                ],
                forgotten_topics_data=[
                    FetchRequest.ForgottenTopic(**_name(topic, version), partitions=indexes)
                    for topic, indexes in forgotten.items()
                ],
            )
            return [*ask(request, version)]

        steps += [
            *step(0, {"filled": {0: 3, 1: 1}}, {}),
            *step(1, {}, {}),
            *step(2, {"nobody": {0: 0}}, {}),
            *step(3, {}, {}),
            *step(4, {"filled": {0: 1}}, {}),
            *step(5, {"filled": {0: 3}}, {}),
            *step(6, {}, {"nobody": (0,)}),
            *step(7, {"filled": {9: 0}}, {}),
            *step(8, {}, {"filled": (9,)}),
            *step(10, {}, {}),  # not the next
            *step(9, {}, {}),
            *step(10, {}, {"filled": (0, 1)}),
            *step(11, {}, {}),  # closed by now
        ]
    return steps
