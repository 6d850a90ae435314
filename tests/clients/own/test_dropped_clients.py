"""Clients that nobody closed: they end by themselves when nobody holds them any more, and say so."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

import ottla
from tests.clients import confluent_client

TIMEOUT_S = 60


def drop(held: list[Any]) -> None:
    held.clear()
    gc.collect()


def thread_of(client: Any) -> threading.Thread:
    thread: threading.Thread = client._loop._thread
    return thread


@pytest.mark.parametrize("make", [ottla.Producer, ottla.Consumer, ottla.Admin])
def test_the_thread_of_a_client_that_is_dropped_ends(bootstrap: str, make: Callable[..., Any]) -> None:
    held = [make(bootstrap_servers=bootstrap)]
    thread = thread_of(held[0])
    with pytest.warns(ResourceWarning, match=f"{make.__name__} was dropped without close"):  # type: ignore[attr-defined]
        drop(held)
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


def test_a_client_that_was_closed_is_dropped_without_a_word(bootstrap: str, recwarn: pytest.WarningsRecorder) -> None:
    held = [ottla.Producer(bootstrap_servers=bootstrap)]
    held[0].close()
    drop(held)
    assert not [one for one in recwarn if "without close" in str(one.message)]


def test_what_a_dropped_producer_was_given_is_delivered(bootstrap: str, topic: str) -> None:
    held = [ottla.Producer(bootstrap_servers=bootstrap, linger_ms=60_000)]
    thread = thread_of(held[0])
    delivery = held[0].send(topic, b"late")
    with pytest.warns(ResourceWarning):
        drop(held)
    assert delivery.result(TIMEOUT_S).offset == 0
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert [placed.record.value for placed in confluent_client.read(bootstrap, topic, 1)] == [b"late"]


def test_a_method_keeps_its_producer(bootstrap: str, topic: str) -> None:
    held = [ottla.Producer(bootstrap_servers=bootstrap).send]
    gc.collect()
    assert held[0](topic, b"first").result(TIMEOUT_S).offset == 0
    assert held[0](topic, b"second").result(TIMEOUT_S).offset == 1
    with pytest.warns(ResourceWarning):
        drop(held)
