"""Faults on request as Java clients take them: they are strict about where in a reply an error stands."""

from collections.abc import Iterator

import pytest

from ottla.testing import Broker
from tests.interop.apache_kafka import MAIN_CLASSES, java

pytestmark = pytest.mark.interop

LINES = [f"line {number}" for number in range(20)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(autouse=True)
def healed(broker: Broker) -> Iterator[None]:
    yield
    broker.heal()


def produce(broker: Broker, topic: str) -> None:
    address = ("--bootstrap-server", broker.bootstrap)
    java(
        MAIN_CLASSES["kafka-console-producer"],
        *address,
        "--topic",
        topic,
        "--message-send-max-retries",
        "20",
        input="\n".join(LINES) + "\n",
    )


def consume(broker: Broker, topic: str, *options: str) -> list[str]:
    words = ("--topic", topic, "--from-beginning", "--max-messages", str(len(LINES)), "--timeout-ms", "30000")
    address = ("--bootstrap-server", broker.bootstrap)
    return java(MAIN_CLASSES["kafka-console-consumer"], *address, *words, *options).stdout.splitlines()


def test_a_java_producer_gets_over_errors_and_lost_replies_and_repeats_nothing(broker: Broker) -> None:
    broker.create_topic("produced")
    faults = [
        broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", topic="produced"),
        broker.drop_connection("Produce", effect="after"),
        broker.fail_next("Produce", "REQUEST_TIMED_OUT", effect="after"),
        broker.drop_connection("Produce"),
        broker.throttle("Produce", 50),
    ]
    produce(broker, "produced")
    assert [fault.seen for fault in faults] == [1] * len(faults)
    assert consume(broker, "produced") == LINES


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_java_consumer_gets_over_errors_of_its_group(broker: Broker, protocol: str) -> None:
    topic = f"consumed-{protocol}"
    broker.create_topic(topic)
    produce(broker, topic)
    join = "JoinGroup" if protocol == "classic" else "ConsumerGroupHeartbeat"
    faults = [
        broker.fail_next("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=2),
        broker.fail_next(join, "NOT_COORDINATOR"),
        broker.fail_next("ListOffsets", "LEADER_NOT_AVAILABLE", topic=topic),
        broker.fail_next("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
    ]
    assert consume(broker, topic, "--command-property", f"group.protocol={protocol}") == LINES
    assert [fault.seen for fault in faults] == [2, 1, 1, 1]


def test_a_java_consumer_gets_over_errors_of_fetches(broker: Broker) -> None:
    """Of the classic protocol: with the other, Java 4.3 fetches again only with the application's next poll."""
    broker.create_topic("fetched")
    produce(broker, "fetched")
    faults = [
        broker.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2, topic="fetched"),
        broker.fail_next("Fetch", "FETCH_SESSION_ID_NOT_FOUND"),
        broker.drop_connection("Fetch", effect="after"),
    ]
    assert consume(broker, "fetched") == LINES
    assert [fault.seen for fault in faults] == [2, 1, 1]
