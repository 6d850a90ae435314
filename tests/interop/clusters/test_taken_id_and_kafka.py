"""A controller of ours does not start beside one of Apache Kafka's that has its node.id."""

from pathlib import Path

import pytest

from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.node_process import end_of, start_process
from ottla.cli.storage import main as storage
from ottla.testing.free_ports import free_ports
from tests.interop.apache_kafka import CLUSTER_ID, ApacheKafka

pytestmark = pytest.mark.interop

WAIT_S = 60.0


def test_the_id_of_a_controller_of_kafkas_is_taken(tmp_path: Path) -> None:
    """Kafka compares epochs before ids, so it is asked twice."""
    (port,) = free_ports(1)
    second = NodeFiles(1, tmp_path, f"127.0.0.1:{port}", ("controller",))
    with ApacheKafka() as kafka:
        voters = str(kafka.config["controller.quorum.voters"])
        settings = {
            "process.roles": "controller",
            "node.id": 1,
            "listeners": f"CONTROLLER://{second.address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": second.data,
        }
        second.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        assert storage(["format", "-t", CLUSTER_ID, "-c", str(second.properties)]) == 0
        process = start_process(second)
        try:
            assert process.wait(WAIT_S) == 1
        finally:
            process.kill()
            process.wait()
    assert f"another controller with node.id=1 is up at {voters.removeprefix('1@')}" in end_of(second.log)
