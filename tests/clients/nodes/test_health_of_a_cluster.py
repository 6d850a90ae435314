"""`ottla health` and `ottla doctor -b` against a real node, with a group that is late."""

import json
import time

import pytest

from ottla.cli.doctor.doctor import main as doctor
from ottla.cli.health.health_command import main as health
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.testing.node import RunningNode


def test_a_node_is_well_until_a_group_is_late(capsys: pytest.CaptureFixture[str]) -> None:
    with RunningNode() as node:
        assert health(["-b", node.bootstrap]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "the cluster is well"
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            sent_ms = int(time.time() * 1000) - 3_600_000
            for number in range(2):
                producer.send("orders", str(number).encode(), partition=0, timestamp_ms=sent_ms)
        reading = {"bootstrap.servers": node.bootstrap, "group.id": "slow", "auto.offset.reset": "earliest"}
        with Consumer(reading) as consumer:
            consumer.subscribe(["orders"])
            first = []
            while not first:
                first = consumer.poll(1.0, max_records=1)
            consumer.commit()
        assert health(["-b", node.bootstrap, "--json"]) == 1
        findings = {one["area"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
        assert findings["groups"]["level"] == "warning"
        assert findings["groups"]["what"].startswith("1 of 1 group late: slow (1 h 0")
        assert {one["level"] for area, one in findings.items() if area != "groups"} <= {"ok", "note"}
        assert health(["-b", node.bootstrap, "--late", "7200"]) == 0
        capsys.readouterr()
        assert doctor(["-b", node.bootstrap]) == 0
        assert doctor(["-b", node.bootstrap, "--strict"]) == 1
        assert "ottla group describe GROUP" in capsys.readouterr().out


def test_a_cluster_that_does_not_answer_is_not_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert health(["-b", "127.0.0.1:1", "--timeout", "1"]) == 1
    assert "ottla health:" in capsys.readouterr().err
