"""Three registries in processes, ten writers; leaders killed and paused: no id twice, and no 200 lost."""

import json
import random
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException

import pytest

import ottla
from ottla.registry.state import State
from ottla.testing import Broker, SchemaRegistry
from tests.clients.eventually import eventually

SETTINGS = {
    "kafkagroup.session.timeout.ms": 1_500,
    "kafkagroup.heartbeat.interval.ms": 200,
    "schema.compatibility.level": "none",
}
TOPIC = ottla.TopicPartition("_schemas", 0)
WRITERS = 10


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": 1_000}) as broker:
        yield broker


@pytest.fixture
def registries(broker: Broker) -> Iterator[list[SchemaRegistry]]:
    started = [SchemaRegistry(broker.bootstrap, SETTINGS) for _ in range(3)]
    try:
        for registry in started:
            registry.start()
        yield started
    finally:
        for registry in started:
            registry.close()


class Writer(threading.Thread):
    """Registers schemas with any registry, and notes what it was told with a 200."""

    def __init__(self, number: int, ports: list[int], over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.told: list[tuple[str, int, int, str]] = []
        self.refused = 0
        self._number = number
        self._ports = ports
        self._over = over
        self._chance = random.Random(number)

    def run(self) -> None:
        place = 0
        while not self._over.is_set():
            subject = f"s{self._chance.randrange(3)}"
            text = f'{{"type":"record","name":"R{self._number}x{place}","fields":[]}}'
            if self._chance.random() < 0.2:
                text = f'{{"type":"record","name":"Shared{self._chance.randrange(50)}","fields":[]}}'
            place += 1
            for _ in range(3):
                if self._register(subject, text):
                    break
            time.sleep(0.02)

    def _register(self, subject: str, text: str) -> bool:
        connection = HTTPConnection("127.0.0.1", self._chance.choice(self._ports), timeout=15)
        try:
            connection.request("POST", f"/subjects/{subject}/versions", json.dumps({"schema": text}))
            response = connection.getresponse()
            reply = json.loads(response.read())
        except (OSError, HTTPException, ValueError):
            self.refused += 1
            return False
        finally:
            connection.close()
        if response.status != 200:
            self.refused += 1
            return False
        self.told.append((subject, reply["version"], reply["id"], text))
        return True


def leader_of(registries: list[SchemaRegistry]) -> SchemaRegistry | None:
    for registry in registries:
        if registry.pid is not None:
            connection = HTTPConnection("127.0.0.1", registry.port, timeout=2)
            try:
                connection.request("GET", "/_health")
                if json.loads(connection.getresponse().read())["status"]["schema_registry_is_primary"]:
                    return registry
            except (OSError, HTTPException, ValueError, KeyError):
                continue
            finally:
                connection.close()
    return None


def replayed(bootstrap: str) -> State:
    state = State()
    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TOPIC])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([TOPIC])[TOPIC]
        while consumer.position(TOPIC) < end:
            for record in consumer.poll(timeout=5):
                state.replay(record.key, record.value, record.timestamp)
    return state


@pytest.mark.slow
def test_no_id_is_given_twice_and_nothing_that_was_told_is_lost(
    broker: Broker, registries: list[SchemaRegistry]
) -> None:
    over = threading.Event()
    writers = [Writer(number, [one.port for one in registries], over) for number in range(WRITERS)]
    for writer in writers:
        writer.start()

    def count() -> int:
        return sum(len(writer.told) for writer in writers)

    for fault in ("kill", "pause", "kill and come back", "pause"):
        before = count()
        eventually(lambda before=before: count() > before + 50, True)
        leader = leader_of(registries)
        assert leader is not None
        if fault == "pause":
            leader.pause()
            others = [one for one in registries if one is not leader]
            eventually(lambda others=others: leader_of(others) is not None, True)
            before = count()
            eventually(lambda before=before: count() > before + 20, True)
            leader.resume()
        else:
            leader.kill()
            if fault == "kill":
                eventually(lambda: leader_of(registries) is not None, True)
            leader.start()
    before = count()
    eventually(lambda: count() > before + 50, True)
    over.set()
    for writer in writers:
        writer.join(60)
    told = [one for writer in writers for one in writer.told]
    text_of: dict[int, str] = {}
    for subject, version, id, text in told:
        assert text_of.setdefault(id, text) == text, f"id {id} was given to two schemas ({subject} {version})"
    state = replayed(broker.bootstrap)
    assert state.duplicate_ids == state.unreadable == 0
    for subject, version, id, text in told:
        found = state.version(subject, version)
        assert found is not None, f"{subject} {version} was told and is lost"
        assert (found.id, found.text) == (id, text)
    assert len(told) > 200
