"""A structured fuzz of a live node: valid messages of every API and version, with extremes, in sequences that keep ids.

Theory of operation. Requests go out in rounds: a few on each of several lines, to brokers and to controllers; now and
then one of a hundred thousand entries, alone. After each round, and again and again while a huge request is worked off,
an innocent client writes and reads; it must be served within `MOST_STALL_S`. The node must be the same process, its log
must have nothing unexpected, its memory must stay under `MOST_GROWTH_BYTES` above where it began.

A finding names its seed and its request. A fault in the node's log names the client, and the number of a request is in
its client's name; of a round after which the node was slow each request is sent once more, alone and timed.
"""

import re
import socket
import time
from collections import Counter
from random import Random
from typing import Any

from ottla.testing.node import RunningNode
from ottla.wire.messages import (
    ApiVersionsRequest,
    DescribeQuorumRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.interop.sasl_node import PLAIN_USERS
from tests.property.node.fuzz_known import Known
from tests.property.node.fuzz_lines import Line, Sent, pump
from tests.property.node.fuzz_load import Load
from tests.property.node.fuzz_messages import FuzzMessages
from tests.property.node.raw_connection import RawConnection
from tests.property.node.witness import Witness, slowest_while_waiting

MOST_STALL_S = 0.25
MOST_GROWTH_BYTES = 400 << 20
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": "10000",
    "group.max.size": "20",
    "group.consumer.max.size": "20",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "max.incremental.fetch.session.cache.slots": "50",
}
"""Kafka's own limits on what clients can pile up, set low: the fuzz has no other way to give anything back."""

_LINES, _OF_CONTROLLERS, _IN_FLIGHT = 14, 3, 6
_QUIET_S, _MOST_S, _PARKED_S = 0.01, 10.0, 0.5
_PATIENCE_S = 60.0
"""Before the node counts as hung. A machine with other work may keep it waiting."""
_ROUNDS_BETWEEN_LOADS = 150
_ROUNDS_BETWEEN_HUGE = 25
_FAULT = re.compile(r"of client '(fuzz-\d+)-|Traceback")


class Finding(AssertionError):
    """What was found, with what is needed to see it again."""


class FuzzRun:
    """`users` is a listener with SASL at which the fuzz is alice, who is no super user as everybody at the other is."""

    def __init__(self, node: RunningNode, seed: int, users: str | None = None) -> None:
        self.node, self.seed = node, seed
        self._random = Random(seed)
        self._known = Known(self._random)
        self._known.directory = str(node.data)
        self._load = Load(lambda: RawConnection(node.bootstrap), self._known)
        self._load.put()
        controllers = controllers_of(node.bootstrap)
        self._of_brokers = FuzzMessages(self._random, self._known, _served(node.address))
        self._of_controllers = FuzzMessages(self._random, self._known, _served(controllers))
        if users is None:
            self._lines = [Line(node.address) for _ in range(_LINES)]
        else:
            host, _, port = users.rpartition(":")
            self._lines = [Line((host, int(port)), log_in) for _ in range(_LINES)]
        self._controller_lines = [Line(controllers) for _ in range(_OF_CONTROLLERS)]
        self._witness = Witness(node.bootstrap, node.rss_bytes, _PATIENCE_S)
        self._pid = node.pid
        self._log_read = node.log.stat().st_size
        self._number = 0
        self.answered, self.hung_up, self.errors = 0, Counter[str](), Counter[int]()
        self.slowest_s = 0.0
        self.slowest_huge = 0.0, ""

    def run(self, requests: int) -> None:
        rounds = 0
        while self._number < requests:
            rounds += 1
            if rounds % _ROUNDS_BETWEEN_LOADS == 0:
                self._load.put()
            huge = rounds % _ROUNDS_BETWEEN_HUGE == 0
            sent = self._send_huge() if huge else self._send_round()
            stall_s = self._witnessed_until_answered(sent) if huge else self._witnessed(sent)
            self._note(stall_s, sent, huge=huge)
            self._receive(_QUIET_S)
            self._check(sent, stall_s)

    def close(self) -> None:
        for line in (*self._lines, *self._controller_lines):
            line.close()
        self._witness.close()

    def summary(self) -> str:
        return (
            f"seed {self.seed}: {self._number} requests, {self.answered} answered, {sum(self.hung_up.values())} lines "
            f"hung up on {dict(self.hung_up.most_common(5))}, slowest {self.slowest_s * 1000:.0f} ms, "
            f"of huge ones {self.slowest_huge[0] * 1000:.0f} ms ({self.slowest_huge[1]}), "
            f"{self._witness.growth_bytes() >> 20} MB more"
        )

    # A round

    def _send_round(self) -> list[Sent]:
        sent: list[Sent] = []
        for lines, messages in ((self._lines, self._of_brokers), (self._controller_lines, self._of_controllers)):
            for line in lines:
                if line.waiting:
                    continue  # It waits for something: see `_receive`.
                sent += [self._send(line, messages) for _ in range(_IN_FLIGHT)]
                line.push()
        return sent

    def _send_huge(self) -> list[Sent]:
        """One request with a hundred thousand entries, alone."""
        lines, messages = self._random.choice(
            ((self._lines, self._of_brokers),) * 4 + ((self._controller_lines, self._of_controllers),)
        )
        line = lines[0]
        if line.waiting:
            line.again()
        sent = self._send(line, messages, huge=True)
        deadline = time.monotonic() + 5
        while line.has_more_to_send and line.push() and time.monotonic() < deadline:
            time.sleep(0.001)
        return [sent]

    def _send(self, line: Line, messages: FuzzMessages, *, huge: bool = False) -> Sent:
        self._number += 1
        sent = Sent(self._number, *messages.request(self._number, huge=huge))
        line.send(sent)
        return sent

    def _receive(self, quiet_s: float) -> None:
        """Until everything is answered, or nothing has come for a while."""
        lines = [*self._lines, *self._controller_lines]
        for line in pump(lines, self._take, quiet_s, _MOST_S):
            if not line.may_be_hung_up_on:
                raise self._finding("hung up", list(line.waiting))
            if line.waiting:
                self.hung_up[type(line.waiting[0].message).__name__] += 1
            line.again()
        now_s = time.monotonic()
        for line in lines:
            if line.waiting and now_s - line.since_s > _PARKED_S:
                line.again()

    def _take(self, sent: Sent, reply: Any) -> None:
        self.answered += 1
        self.errors[getattr(reply, "error_code", 0)] += 1
        self._known.learn(sent.message, reply)

    # Checks

    def _witnessed(self, sent: list[Sent]) -> float:
        """How long the innocent client had to wait, without the time that others had the processor."""
        try:
            return self._witness.stall_s(self._pid)
        except (AssertionError, OSError) as problem:
            raise self._finding(f"the innocent client was not served: {problem!r}", sent) from problem

    def _witnessed_until_answered(self, sent: list[Sent]) -> float:
        """The longest of all waits while the request is worked off."""
        deadline = time.monotonic() + _MOST_S
        slowest_s = 0.0
        while any(line.waiting for line in self._lines + self._controller_lines) and time.monotonic() < deadline:
            slowest_s = max(slowest_s, self._witnessed(sent))
            before = self.answered + sum(self.hung_up.values())
            self._receive(_QUIET_S)
            if self.answered + sum(self.hung_up.values()) > before:
                break
        return slowest_s

    def _note(self, stall_s: float, sent: list[Sent], *, huge: bool) -> None:
        if huge:
            self.slowest_huge = max(self.slowest_huge, (stall_s, type(sent[0].message).__name__))
        else:
            self.slowest_s = max(self.slowest_s, stall_s)

    def _check(self, sent: list[Sent], stall_s: float) -> None:
        if not self.node.is_running or self.node.pid != self._pid:
            raise self._finding("the node is gone", sent)
        if self.node.log.stat().st_size > self._log_read:
            self._read_log(sent)
        if stall_s > MOST_STALL_S:
            self._find_slow(sent, stall_s)
        growth = self._witness.growth_bytes()
        if growth > MOST_GROWTH_BYTES:
            raise self._finding(f"{growth >> 20} MB more memory than before", sent)

    def _read_log(self, sent: list[Sent]) -> None:
        with self.node.log.open("rb") as log:
            log.seek(self._log_read)
            text = log.read().decode(errors="replace")
        self._log_read += len(text.encode())
        found = _FAULT.search(text)
        if found:
            guilty = [one for one in sent if found[1] == f"fuzz-{one.number}"]
            raise self._finding(f"a fault\n{text[-6000:]}", guilty or sent)

    def _find_slow(self, sent: list[Sent], stall_s: float) -> None:
        """Sends each once more, alone. One that is slow again is a finding; if none is, the machine was."""
        slow = []
        for one in sent:
            with RawConnection(self.node.bootstrap) as connection:
                connection.send(one.frame)
                again_s = slowest_while_waiting(lambda one=one: self._witnessed([one]), connection, _PARKED_S)
            if again_s > MOST_STALL_S:
                slow.append((again_s, one))
        if slow:
            again_s, one = max(slow, key=lambda pair: pair[0])
            raise self._finding(f"others waited for {stall_s:.3f} s, and {again_s:.3f} s when repeated", [one])

    def _finding(self, what: str, sent: list[Sent]) -> Finding:
        shown = "\n".join(f"{_shortened(one.message)} version {one.version}, {len(one.frame)} bytes" for one in sent)
        frames = "\n".join(one.frame.hex() for one in sent if len(one.frame) < 2000)
        return Finding(
            f"seed {self.seed}, request {self._number}: {what}\n{shown}\n{frames}\n{self.node.end_of_log(10)[-3000:]}"
        )


def _shortened(message: object) -> str:
    """The message, with what repeats itself told once."""
    return re.sub(r"((.{1,400}?)\2{3})\2*", r"\2…", repr(message)[:200_000])[:2000]


def _served(address: tuple[str, int]) -> list[tuple[int, int]]:
    with RawConnection(":".join(map(str, address))) as connection:
        answer = connection.ask(ApiVersionsRequest(client_software_name="fuzz", client_software_version="1"), 3)
    return [
        (api.api_key, version) for api in answer.api_keys for version in range(api.min_version, api.max_version + 1)
        if not (api.api_key == 0 and version < 3)
    ]  # fmt: skip


def log_in(connected: socket.socket) -> None:
    connection = RawConnection.over(connected)
    connection.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    said = b"\0alice\0" + PLAIN_USERS["alice"].encode()
    answer = connection.ask(SaslAuthenticateRequest(auth_bytes=said), 2)
    assert not answer.error_code, answer.error_message


def controllers_of(bootstrap: str) -> tuple[str, int]:
    topic = DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
    )
    with RawConnection(bootstrap) as connection:
        nodes = connection.ask(DescribeQuorumRequest(topics=[topic]), 2).nodes
    listener = nodes[0].listeners[0]
    return socket.gethostbyname(listener.host), listener.port
