"""Rights that are given and taken while requests of the same shape come again, wait and are answered, from a seed.

A node may remember what a request looks like, never that it was allowed: a request is allowed by the rules of the
moment in which it is handled, whatever was answered before and whatever waits. A fetch that waits when its right is
taken is answered then, and reads nothing of what is written later.
"""

from hashlib import md5
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.log.disk import OsDisk
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.records.builder import BatchBuilder
from ottla.records.header import Compression
from ottla.wire import messages as m
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from tests.golden.access.access_requests import MINE, batch
from tests.golden.access.access_table import creations
from tests.golden.access.guarded_nodes import GuardedNode
from tests.golden.access.prepared import prepare
from tests.unit.node.whole_nodes import PORT

READ_TOPIC = (AclResource.TOPIC, AclOperation.READ)
WRITE_TOPIC = (AclResource.TOPIC, AclOperation.WRITE)
READ_GROUP = (AclResource.GROUP, AclOperation.READ)
RIGHTS = (READ_TOPIC, WRITE_TOPIC, READ_GROUP)
REFUSALS = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED}
VERSIONS: dict[type[Any], int] = {m.FetchRequest: 12, m.ProduceRequest: 9, m.OffsetCommitRequest: 8}
NEEDED = {
    m.FetchRequest: {READ_TOPIC},
    m.ProduceRequest: {WRITE_TOPIC},
    m.OffsetCommitRequest: {READ_TOPIC, READ_GROUP},
}
WAIT_MS = 20
RESPONSES = {
    m.FetchRequest: m.FetchResponse,
    m.ProduceRequest: m.ProduceResponse,
    m.OffsetCommitRequest: m.OffsetCommitResponse,
}


def fetch(offset: int, max_wait_ms: int, max_bytes: int) -> m.FetchRequest:
    partition = m.FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = m.FetchRequest.FetchTopic(topic=MINE, partitions=[partition])
    return m.FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, session_id=0, session_epoch=-1, topics=[topic]
    )


def produce() -> m.ProduceRequest:
    data = [m.ProduceRequest.PartitionProduceData(index=0, records=batch())]
    topic = m.ProduceRequest.TopicProduceData(name=MINE, partition_data=data)
    return m.ProduceRequest(acks=1, timeout_ms=1000, transactional_id=None, topic_data=[topic])


def commit(offset: int) -> m.OffsetCommitRequest:
    request = m.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = request.OffsetCommitRequestTopic(name=MINE, partitions=[partition])
    return request(group_id=MINE, generation_id_or_member_epoch=-1, topics=[topic])


def error_of(response: Any) -> int:
    match response:
        case m.FetchResponse():
            return int(response.responses[0].partitions[0].error_code)
        case m.ProduceResponse():
            return int(response.responses[0].partition_responses[0].error_code)
        case _:
            return int(response.topics[0].partitions[0].error_code)


class Reader:
    """A client on one connection, and what the rules said when each of its requests was handled."""

    def __init__(self, node: GuardedNode) -> None:
        self.node = node
        self._client = node.whole.connect(PORT)
        self._asked: list[tuple[Any, bool | None]] = []
        self._answered = 0
        self._received = b""

    def ask(self, request: Any, is_allowed: bool) -> None:
        self._client.send(encode_request(request, VERSIONS[type(request)], len(self._asked), "a client"))
        self._asked.append((request, is_allowed))
        self.node.whole.network.run()

    def rules_change(self) -> None:
        """A fetch that waits is answered with a refusal; one whose answer is on its way was allowed."""
        self._asked[self._answered :] = [
            (request, None if is_allowed and isinstance(request, m.FetchRequest) else is_allowed)
            for request, is_allowed in self._asked[self._answered :]
        ]

    def check(self) -> int:
        """Whether what has been answered was allowed or refused as the rules said; returns how much has been."""
        for _ in range(3):
            self.node.whole.network.run()
            self.node.whole.timers.advance(WAIT_MS // 2)
        self._received += self._client.receive()
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            request, is_allowed = self._asked[self._answered]
            kind = type(request)
            number, response = decode_response(RESPONSES[kind], frame, VERSIONS[kind])
            assert number == self._answered
            was_refused = error_of(response) in REFUSALS
            assert is_allowed is None or was_refused is not is_allowed, (number, request, response)
            self._answered += 1
        return self._answered


def some_request(random: Random, end: int) -> Any:
    """Mostly fetches, and mostly of few shapes: what is remembered is remembered by the shape."""
    match random.randrange(8):
        case 0:
            return produce()
        case 1:
            return commit(random.randrange(100))
        case _:
            offset = end if random.random() < 0.6 else random.randrange(end)
            return fetch(offset, random.choice([0, WAIT_MS, WAIT_MS]), random.choice([1 << 19, 1 << 20]))


def run(seed: int, steps: int, directory: Path) -> int:
    random = Random(seed)
    # What comes from the page cache of a real disk is answered by other code than what a disk in memory has.
    node = GuardedNode(disk=OsDisk(), log_dirs=str(directory))
    try:
        prepare(node.ask)
        end = _end_of(node.ask(produce(), 9)) + 1
        clients = [Reader(node) for _ in range(2)]
        given: set[Any] = set()
        for _ in range(steps):
            if random.random() < 0.25:
                given = {right for right in RIGHTS if random.random() < 0.5}
                for client in clients:
                    client.rules_change()
                node.delete_rules()
                node.create_rules(creations(given, "User:ANONYMOUS"))
            request = some_request(random, end)
            is_allowed = NEEDED[type(request)] <= given
            random.choice(clients).ask(request, is_allowed)
            if isinstance(request, m.ProduceRequest) and is_allowed:
                end += 1
            if random.random() < 0.5:
                for client in clients:
                    client.check()
        node.whole.timers.advance(100)
        return sum(client.check() for client in clients)
    finally:
        node.whole.stop()


def _end_of(response: Any) -> int:
    return int(response.responses[0].partition_responses[0].base_offset)


@pytest.mark.parametrize("seed", [10, 11, 16, 28])  # Each found a fetch that had waited and allowed those after it.
def test_a_request_is_allowed_by_the_rules_of_its_own_moment(seed: int, tmp_path: Path) -> None:
    assert run(seed, 300, tmp_path) == 300


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_requests_are_allowed_by_the_rules_of_their_own_moments(seed: int, tmp_path: Path) -> None:
    assert run(seed, 1000, tmp_path) == 1000


@pytest.mark.parametrize("in_session", [False, True], ids=["without a session", "in a session"])
def test_vulnerability_a_fetch_that_waits_reads_nothing_after_its_right_was_taken(in_session: bool) -> None:
    """It may wait for as long as its client likes."""
    node = GuardedNode()
    prepare(node.ask)
    node.create_rules(creations([READ_TOPIC], "User:ANONYMOUS"))
    end = _end_of(node.ask(produce(), 9)) + 1
    answers: list[Any] = []
    client = node.whole.connect(PORT)

    def ask(request: m.FetchRequest) -> None:
        client.send(encode_request(request, 12, 0, "a client"))
        hear()

    def hear() -> None:
        node.whole.network.run()
        node.whole.timers.advance(1)
        node.whole.network.run()
        received = client.receive()
        if received:
            answers.append(decode_response(m.FetchResponse, received[4:], 12)[1])

    request = fetch(end, 1 << 30, 1 << 20)
    if in_session:
        request.session_epoch, request.max_wait_ms = 0, 0
        ask(request)
        waiting = m.FetchRequest(session_id=answers.pop().session_id, session_epoch=1, max_wait_ms=1 << 30, min_bytes=1)
        waiting.max_bytes = 1 << 20
        ask(waiting)
    else:
        ask(request)
    node.create_rules(creations([WRITE_TOPIC], "User:ANONYMOUS"))
    hear()
    assert answers == [], "another rule ends no wait"
    node.delete_rules()
    node.ask(produce(), 9)
    hear()
    (answer,) = answers
    assert error_of(answer) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not answer.responses[0].partitions[0].records
    node.whole.stop()


def test_a_commit_that_was_allowed_and_is_answered_later_allows_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its replicas may need long. Meanwhile the right is taken; the next commit of the same shape is refused."""
    node = GuardedNode()
    prepare(node.ask)
    node.create_rules(creations([READ_TOPIC, READ_GROUP], "User:ANONYMOUS"))
    held: list[Any] = []
    broker = node.whole.node.broker
    assert broker is not None
    groups_type = type(broker.groups)
    submit = groups_type.submit_encoded

    class Late:
        """A command whose outcome is told when the test says so."""

        def __init__(self, command: Any) -> None:
            self.subject, self.reply, self._command = command.subject, None, command
            self.decide, self.refuse = command.decide, command.refuse

        def tell(self) -> None:
            self._command.reply = self.reply
            held.append(self._command.tell)

    client = Reader(node)
    with monkeypatch.context() as slow:
        slow.setattr(groups_type, "submit_encoded", lambda groups, command: submit(groups, Late(command)))
        client.ask(commit(10), True)
    node.delete_rules()
    (answer,) = held
    answer()
    assert client.check() == 1
    client.ask(commit(777), False)
    assert client.check() == 2
    node.whole.stop()


def hear_of(node: GuardedNode, name: str, topic_id: Uuid) -> None:
    """The broker's metadata has another topic, of which the clients of other brokers may have heard before."""
    broker, delta = node.whole.node.broker, MetadataDelta()
    assert broker is not None
    partition = m.PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1, directories=(ZERO_UUID,)
    )
    for record in (m.TopicRecord(name=name, topic_id=topic_id), partition):
        broker.image.replay(record, delta)
    broker.on_metadata(delta)
    node.whole.network.run()
    assert broker.partitions.get((name, 0)) is not None


def test_vulnerability_a_fetch_that_waits_reads_no_topic_that_it_may_not_when_its_id_is_known() -> None:
    node = GuardedNode()
    ids = prepare(node.ask)
    node.create_rules(creations([READ_TOPIC], "User:ANONYMOUS"))
    secret = Uuid(b"of a secret one!")
    topics = [
        m.FetchRequest.FetchTopic(
            topic_id=id, partitions=[m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)]
        )
        for id in (ids[MINE], secret)
    ]
    request = m.FetchRequest(max_wait_ms=500, min_bytes=1 << 20, max_bytes=1 << 20, session_epoch=-1, topics=topics)
    client = node.whole.connect(PORT)
    client.send(encode_request(request, 13, 0, "a client"))
    node.whole.network.run()
    assert client.receive() == b"", "it waits"
    hear_of(node, "secret", secret)
    data = [m.ProduceRequest.PartitionProduceData(index=0, records=batch())]
    write = m.ProduceRequest(acks=1, topic_data=[m.ProduceRequest.TopicProduceData(name="secret", partition_data=data)])
    assert not node.ask(write, 9).responses[0].partition_responses[0].error_code
    node.whole.timers.advance(501)
    node.whole.network.run()
    (_, response) = decode_response(m.FetchResponse, client.receive()[4:], 13)
    told = {topic.topic_id: topic.partitions[0] for topic in response.responses}
    assert (told[secret].error_code, bytes(told[secret].records)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")
    node.whole.stop()


def test_vulnerability_a_batch_is_not_written_to_a_topic_whose_id_was_unknown_when_the_right_was_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another batch of its request is looked at by a worker meanwhile."""
    node = GuardedNode()
    ids = prepare(node.ask)
    node.create_rules(creations([WRITE_TOPIC], "User:ANONYMOUS"))
    broker, secret, held = node.whole.node.broker, Uuid(b"of a secret one!"), list[Any]()
    assert broker is not None
    run_job = broker.world.workers.run

    def hold_checks(*job: Any, key: Any = None) -> None:
        if key == "batch checks":
            held.append(lambda: run_job(*job, key=key))
        else:
            run_job(*job, key=key)

    monkeypatch.setattr(broker.world.workers, "run", hold_checks)
    builder = BatchBuilder(compression=Compression.GZIP)
    for number in range(8_000):
        builder.append(1_700_000_000_000, None, md5(number.to_bytes(4, "big")).digest())
    topics = [
        m.ProduceRequest.TopicProduceData(
            topic_id=id, partition_data=[m.ProduceRequest.PartitionProduceData(index=0, records=records)]
        )
        for id, records in ((ids[MINE], builder.build()), (secret, batch()))
    ]
    client = node.whole.connect(PORT)
    data = encode_request(m.ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 13, 0, "a client")
    while data:
        data = data[client.send(data) :]
        node.whole.network.run()
    (check,) = held
    hear_of(node, "secret", secret)
    check()
    node.whole.network.run()
    _, response = decode_response(m.ProduceResponse, client.receive()[4:], 13)
    errors = {topic.topic_id: topic.partition_responses[0].error_code for topic in response.responses}
    assert errors == {ids[MINE]: ErrorCode.NONE, secret: ErrorCode.UNKNOWN_TOPIC_ID}
    assert broker.partitions["secret", 0].log.log_end_offset == 0
    node.whole.stop()
