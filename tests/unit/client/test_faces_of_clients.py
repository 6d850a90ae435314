"""What the faces of all clients have in common."""

import inspect
import subprocess
import sys

import pytest

import ottla
import ottla.aio

FACES = [ottla.Producer, ottla.Consumer, ottla.Admin, ottla.aio.Producer, ottla.aio.Consumer, ottla.aio.Admin]


@pytest.mark.parametrize("face", FACES, ids=lambda face: f"{face.__module__}.{face.__name__}")
def test_a_time_limit_is_called_timeout_and_is_in_seconds(face: type) -> None:
    calls = {name: getattr(face, name) for name in dir(face) if not name.startswith("_")}
    limits = {
        parameter
        for call in calls.values()
        if inspect.isroutine(call)
        for parameter in inspect.signature(call).parameters
        if parameter.startswith("timeout")
    }
    assert limits == {"timeout"}


@pytest.mark.parametrize("name", ["aio.Producer", "admin.NewTopic", "errors.KafkaError", "Consumer"])
def test_one_import_is_enough(name: str) -> None:
    program = f"import ottla; print(ottla.{name}.__name__); assert '{name.partition('.')[0]}' in dir(ottla)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == name.rpartition(".")[2]
