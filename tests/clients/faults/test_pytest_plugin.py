"""The plugin as a project sees it that has installed ottla: small suites, each run by a pytest of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient

from ottla.testing import Broker
from ottla.testing.node import RunningNode

SHARED = """
import json, os, pathlib

def note(name, **facts):
    pathlib.Path(name + ".json").write_text(json.dumps(facts))
"""


def run_suite(directory: Path, tests: str, *options: str, **environment: str) -> dict[str, dict[str, object]]:
    """Runs the tests, which all must pass; returns what each has noted."""
    (directory / "shared.py").write_text(SHARED)
    (directory / "test_suite.py").write_text("from shared import note\n" + tests)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return {path.stem: json.loads(path.read_text()) for path in directory.glob("*.json")}


def is_there(pid: object) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_suite_shares_a_broker_and_every_test_has_a_topic_of_its_own(tmp_path: Path) -> None:
    noted = run_suite(
        tmp_path,
        """
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

@pytest.mark.parametrize("what", ["a b", "é"])
def test_round_trip(what, ottla_broker, ottla_topic):
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce(ottla_topic, what)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition(ottla_topic, 0, 0)])
    assert consumer.poll(20).value().decode() == what
    consumer.close()
    note("trip" + what, topic=ottla_topic, bootstrap=ottla_broker.bootstrap, log=str(ottla_broker.log))

@pytest.mark.ottla_topic(partitions=3, settings={"cleanup.policy": "compact"})
def test_marked(ottla_broker, ottla_topic):
    found = AdminClient({"bootstrap.servers": ottla_broker.bootstrap}).list_topics(ottla_topic, 20)
    note("marked", partitions=len(found.topics[ottla_topic].partitions), bootstrap=ottla_broker.bootstrap)
""",
    )
    first, second, marked = noted["tripa b"], noted["tripé"], noted["marked"]
    assert str(first["topic"]).startswith("test_round_trip-a-b-")
    assert first["topic"] != second["topic"]
    assert first["bootstrap"] == second["bootstrap"] == marked["bootstrap"]
    assert marked["partitions"] == 3
    assert not Path(str(first["log"])).exists(), "nothing is left after the session"


def test_each_worker_has_a_broker_of_its_own(tmp_path: Path) -> None:
    noted = run_suite(
        tmp_path,
        """
import os, pytest, time, pathlib

@pytest.mark.parametrize("number", [0, 1])
def test_of_a_worker(number, ottla_broker, ottla_topic):
    note(f"worker{number}", bootstrap=ottla_broker.bootstrap, pid=ottla_broker.pid)
    deadline = time.monotonic() + 60
    while not pathlib.Path(f"worker{1 - number}.json").exists():  # so that both workers have one test each
        assert time.monotonic() < deadline
        time.sleep(0.01)
""",
        "-n2",
        "--maxschedchunk=1",
    )
    assert noted["worker0"]["bootstrap"] != noted["worker1"]["bootstrap"]
    assert not is_there(noted["worker0"]["pid"])
    assert not is_there(noted["worker1"]["pid"])


def test_a_broker_that_is_given_is_used_and_left_as_it_was(tmp_path: Path) -> None:
    with RunningNode() as node:
        noted = run_suite(
            tmp_path,
            """
import pytest
from ottla.testing.broker.given_broker import NotOurBroker

def test_given(ottla_broker, ottla_topic):
    with pytest.raises(NotOurBroker, match="OTTLA_BROKER"):
        ottla_broker.kill()
    note("given", bootstrap=ottla_broker.bootstrap, topic=ottla_topic)
""",
            OTTLA_BROKER=node.bootstrap,
        )
        assert noted["given"]["bootstrap"] == node.bootstrap
        assert noted["given"]["topic"]
        assert AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=20).topics == {}


def test_a_broker_that_is_given_with_its_control_port_fails_on_request_and_is_healed(tmp_path: Path) -> None:
    with Broker() as broker:
        noted = run_suite(
            tmp_path,
            """
def test_harms(ottla_broker):
    ottla_broker.delay("*", 60_000)

def test_is_not_harmed(ottla_broker, ottla_topic):
    note("given", topic=ottla_topic)
""",
            OTTLA_BROKER=broker.bootstrap,
            OTTLA_FAULTS=str(broker._control.port),
            OTTLA_FAULTS_TOKEN=broker._node.environment["OTTLA_FAULTS_TOKEN"],
        )
        assert noted["given"]["topic"]


def test_what_a_test_does_to_the_sessions_broker_is_undone_after_it(tmp_path: Path) -> None:
    noted = run_suite(
        tmp_path,
        """
import time
import pytest
from confluent_kafka import Producer

HARMS = {
    "errors": lambda broker: broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=None),
    "pause": lambda broker: broker.pause(),
    "disk": lambda broker: broker.fill_disk(),
    "kill": lambda broker: broker.kill(),
    "stop": lambda broker: broker.stop(),
    "time": lambda broker: broker.advance_time(86_400_000),
}

@pytest.fixture
def flushed(ottla_broker, ottla_topic):
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    yield lambda: producer.produce(ottla_topic, "x")
    assert producer.flush(20) == 0  # The broker is well again before fixtures are torn down.

@pytest.mark.parametrize("harm", HARMS)
def test_harm(harm, ottla_broker, flushed):
    HARMS[harm](ottla_broker)
    flushed()
    note(harm, bootstrap=ottla_broker.bootstrap)
""",
    )
    assert set(noted) == {"errors", "pause", "disk", "kill", "stop", "time"}
    assert len({str(facts["bootstrap"]) for facts in noted.values()}) == 1


def test_a_factory_makes_brokers_with_settings_of_their_own(tmp_path: Path) -> None:
    noted = run_suite(
        tmp_path,
        """
from confluent_kafka.admin import AdminClient

def test_own(ottla_broker_factory):
    broker = ottla_broker_factory({"num.partitions": 5})
    other = ottla_broker_factory()
    broker.create_topic("five", partitions=-1)
    found = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=20).topics
    note("own", partitions=len(found["five"].partitions), pids=[broker.pid, other.pid])

def test_after(ottla_broker_factory):
    pass
""",
    )
    assert noted["own"]["partitions"] == 5
    assert not any(map(is_there, noted["own"]["pids"]))  # type: ignore[call-overload]


def test_a_project_that_uses_no_fixture_loads_nothing_of_ours() -> None:
    program = """
import sys
import ottla.testing.pytest_plugin
print(*(name for name in sys.modules if name.startswith("ottla.")))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert set(run.stdout.split()) == {"ottla.testing", "ottla.testing.pytest_plugin"}
