"""What is measured: for each part its rows, with the clients that take part in them."""

from typing import Any, NamedTuple


class Work(NamedTuple):
    title: str
    module: str
    """Beside this file; its `run(**options)` measures one client and returns numbers by name."""
    options: dict[str, Any]
    ours: str
    clients: tuple[str, ...]


_BLOCKING = ("ottla.Producer", "confluent-kafka", "kafka-python")
_ASYNC = ("ottla.aio.Producer", "aiokafka")


def _produce() -> list[Work]:
    works = []
    for size in (100, 1000):
        for codec in ("none", "lz4"):
            for partitions in (1, 8):
                options = {"size": size, "codec": codec, "partitions": partitions, "batch_size": 65_536}
                what = f"produce {size} B, {codec}, {partitions} partition{'s' * (partitions > 1)}"
                works.append(Work(f"{what}, blocking", "producing", options, _BLOCKING[0], _BLOCKING))
                works.append(Work(f"{what}, asyncio", "producing", options, _ASYNC[0], _ASYNC))
    for size in (100, 1000):
        options = {"size": size, "codec": "none", "partitions": 1, "batch_size": None}
        title = f"produce {size} B, none, 1 partition, each client's own default of batch.size"
        works.append(Work(title, "producing", options, _BLOCKING[0], _BLOCKING + _ASYNC))
    options = {"size": 100, "codec": "none", "partitions": 8, "batch_size": 65_536}
    works.append(Work("produce rows of Arrow, 100 B", "producing", options, "ottla send_arrow", ("ottla send_arrow",)))
    return works


_READING = ("ottla.Consumer", "confluent-kafka", "kafka-python")
_READING_ASYNC = ("ottla.aio.Consumer", "aiokafka")
_READING_LISTS = ("ottla.aio poll", "aiokafka getmany")
_READING_ROWS = ("ottla poll_arrow", "confluent-kafka", "bare loopback")


def _consume() -> list[Work]:
    works = []
    for size in (100, 1000):
        for codec in ("none", "lz4"):
            for partitions in (1, 8):
                options = {"size": size, "codec": codec, "partitions": partitions}
                what = f"consume {size} B, {codec}, {partitions} partition{'s' * (partitions > 1)}"
                works.append(Work(f"{what}, blocking", "consuming", options, _READING[0], _READING))
                works.append(Work(f"{what}, asyncio", "consuming", options, _READING_ASYNC[0], _READING_ASYNC))
        options = {"size": size, "codec": "none", "partitions": 1}
        title = f"consume {size} B, none, 1 partition, asyncio by lists"
        works.append(Work(title, "consuming", options, _READING_LISTS[0], _READING_LISTS))
        title = f"consume {size} B, none, 1 partition, as Arrow"
        works.append(Work(title, "consuming", options, _READING_ROWS[0], _READING_ROWS))
    return works


def _round_trip() -> list[Work]:
    options = {"size": 100}
    return [
        Work("round trip, blocking", "round_trip", options, "ottla", ("ottla", "confluent-kafka")),
        Work("round trip, asyncio", "round_trip", options, "ottla.aio", ("ottla.aio", "aiokafka")),
    ]


WORKS: dict[str, list[Work]] = {"produce": _produce(), "consume": _consume(), "round-trip": _round_trip()}
