"""A partition that moves between the log directories of its node, to and fro, while it is written to.

The node is killed in the middle, again and again. What was acknowledged is there, once and in order.
"""

import socket
from pathlib import Path

from ottla.testing.node import RunningNode
from ottla.wire.codec import decode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_request
from ottla.wire.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from tests.clients import confluent_client
from tests.clients.eventually import eventually
from tests.clients.foreign.test_client_restarts import Sending

VERSION = 2
TIMEOUT_S = 30.0
LIVES = 6


def homes(directory: Path) -> list[str]:
    return [str(path.parent) for path in directory.glob("*/numbers-0")]


def move(node: RunningNode, path: str) -> ErrorCode:
    """Asks for a move as admin clients do."""
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="numbers", partitions=(0,))]
    dirs = [AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=topics)]
    with socket.create_connection(node.address, timeout=TIMEOUT_S) as connection, connection.makefile("rb") as stream:
        connection.sendall(encode_request(AlterReplicaLogDirsRequest(dirs=dirs), VERSION, 1, None))
        reply = stream.read(int.from_bytes(stream.read(4), "big"))
    (topic,) = decode(AlterReplicaLogDirsResponse, reply[5:], VERSION).results
    return ErrorCode(topic.partitions[0].error_code)


def test_what_was_acknowledged_survives_moves_and_kills(tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("data", "more")]
    with RunningNode(tmp_path, config={"log.dirs": ",".join(directories)}) as node:
        confluent_client.Admin(node.bootstrap).create("numbers", 1, {})
        sending = Sending(confluent_client.Stream(node.bootstrap, "numbers"))
        for life in range(LIVES):
            sending.wait_for_acknowledgements(50)
            target = directories[life % 2]
            assert move(node, target) == ErrorCode.NONE
            if life % 3 == 2:
                eventually(lambda: homes(tmp_path), [target])
            else:
                sending.wait_for_acknowledgements(1 + 10 * (life % 3))
            node.kill()
            node.start()
        sending.wait_for_acknowledgements(50)
        sending.finish()

        _, end = confluent_client.bounds(node.bootstrap, "numbers")
        found = [int(placed.record.value or b"") for placed in confluent_client.read(node.bootstrap, "numbers", end)]
        assert sending.stream.problems == []
        assert found == sorted(set(found)), "a record was doubled, or overtaken"
        assert set(sending.stream.acknowledged) <= set(found)
        assert len(homes(tmp_path)) == 1
