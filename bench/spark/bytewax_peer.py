"""The questions that bytewax can answer from the same topic: those about bids alone and without state.

    python bench/spark/bytewax_peer.py BOOTSTRAP TOPIC QUESTION COUNT     prints events a second of a core

It runs in an environment of its own (peers.py), in one worker, reads the topic to its end and drops the answers. The
topic has COUNT events.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

DOLLARS_TO_EUROS = 0.908

PEERS: dict[int, Callable[[Any], Any]] = {
    0: lambda bid: bid,
    1: lambda bid: {**bid, "price": round(bid["price"] * DOLLARS_TO_EUROS, 3)},
    2: lambda bid: {"auction": bid["auction"], "price": bid["price"]} if bid["auction"] % 123 == 0 else None,
}


class _Counted(StatelessSinkPartition):
    def __init__(self) -> None:
        self.rows = 0

    def write_batch(self, items: list[Any]) -> None:
        self.rows += len(items)


class _Sink(DynamicSink):
    def __init__(self) -> None:
        self.parts: list[_Counted] = []

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Counted:
        self.parts.append(_Counted())
        return self.parts[-1]


def rate_of(bootstrap: str, topic: str, number: int, count: int) -> float:
    """Events in a second of this process's time on the processors, its threads included."""
    flow, sink = Dataflow("nexmark"), _Sink()
    read = kop.input("read", flow, brokers=[bootstrap], topics=[topic], tail=False, batch_size=10_000)
    answer = PEERS[number]
    op.output("drop", op.map("answer", read.oks, lambda message: answer(json.loads(message.value))), sink)
    began_s = time.process_time()
    run_main(flow)
    taken_s = time.process_time() - began_s
    rows = sum(part.rows for part in sink.parts)
    assert rows == count, f"{rows} events came, of {count}"
    return count / taken_s


if __name__ == "__main__":
    print(rate_of(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
