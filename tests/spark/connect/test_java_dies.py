"""Spark's Java process is killed: another one is started, and all connectors go on. In a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Broker

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from ottla.connect.engine import SparkEngine
from ottla.connect.engine_port import ConnectorSpec
from tests.spark.connect.scene import Listener, SourceScene
from tests.spark.connect.test_engine import _planners, until

class Far:
    bootstrap = sys.argv[1]

scene = SourceScene(Far, sys.argv[2], Path(sys.argv[3]))
engine = SparkEngine({**scene.worker, "spark.master": "local[2]"})
listeners = {}
names = [f"{scene.name}-{way}" for way in ("true", "false")]
for name in names:
    (scene.directory / f"{name}.txt").write_text("one\\n")
    config = {**scene.config, "name": name, "file": str(scene.directory / f"{name}.txt")}
    config["ottla.connect.direct"] = name.rpartition("-")[2]
    listeners[name] = Listener()
    engine.start(ConnectorSpec(name, config, scene.worker, 1), listeners[name])
until(lambda: scene.lines().count("one") == 2, 240)
planners = _planners()
os.kill(engine.session.java_pid, signal.SIGKILL)
until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in planners), 60)
for name in names:
    with open(scene.directory / f"{name}.txt", "a") as file:
        file.write("two\\n")
until(lambda: scene.lines().count("two") == 2, 240)
assert sorted(scene.lines()) == ["one", "one", "two", "two"], scene.lines()
for name in names:
    assert "failed" not in listeners[name].events, listeners[name].traces
engine.close()
for name in names:
    listeners[name].wait_for("stopped")
print("all went on")
"""

STOPPED = """
from ottla.connect.engine.session import Session

session = Session({"spark.master": "local[1]"})
first = session.get()
java = session.java_pid
assert not session.has_ended()
first.sparkContext._jsc.sc().stop()
assert session.has_ended()
assert session.get().range(3).count() == 3
assert session.java_pid != java and not session.has_ended()
session.close()
print("another one")
"""


@pytest.mark.slow
def test_all_connectors_go_on_when_sparks_java_process_dies(
    ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PROGRAM, ottla_broker.bootstrap, ottla_topic, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=580, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-6000:]
    assert "all went on" in ended.stdout


@pytest.mark.slow
def test_another_session_is_made_when_sparks_context_has_stopped() -> None:
    """Java lives on then, and nothing would ever run in it."""
    command = [sys.executable, "-c", STOPPED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-6000:]
    assert "another one" in ended.stdout
