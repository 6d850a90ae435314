"""Brokers that answer as a test says, for the cores of clients: no sockets, no threads, time when it is told.

    brokers = ScriptedBrokers(topics={"clicks": 3})
    cluster = Cluster(brokers.world, settings)
    brokers.answer("ListOffsets", lambda node_id, version, request: ListOffsetsResponse(...))
    promise = cluster.ask(1, ListOffsetsRequest(...))
    brokers.run()                 # until nothing moves any more
    assert brokers.asked("ListOffsets") == [...]
    brokers.advance(100)          # milliseconds pass

Theory of operation. A dialled broker is a pair of byte buffers. Requests are decoded by the codec that nodes use, put
down in `transcript`, and answered by the function that the test gave for their API: with a message, with `DROP` (the
connection breaks), with `KEEP` (no answer comes), or with a list of such, one for each call. ApiVersions and Metadata
are answered out of what the test says of the cluster, unless it gives functions for them too. A client's bytes are
those of a real broker: framing, versions and correlation are in play.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from ottla.base.ids import Uuid
from ottla.base.ports import Buffer, Transport, Watcher
from ottla.client.client_log import ClientLog, Line
from ottla.client.world import ClientWorld
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.wire.apis import all_apis
from ottla.wire.frame import decode_request, encode_response
from ottla.wire.message import Message
from ottla.wire.messages import ApiVersionsResponse, MetadataResponse

DROP: Final = "drop"
"""An answer: the connection breaks."""
KEEP: Final = "keep"
"""An answer: none comes. `release` gives them later."""

_API_VERSIONS: Final = 18
_METADATA: Final = 3
_MOST_STEPS: Final = 100_000

Answer = Callable[[int, int, Any], Any]
"""From node id, version and request to a response, `DROP` or `KEEP`."""


class ScriptedRequest(NamedTuple):
    """One request, as a broker got it."""

    node_id: int
    api: str
    version: int
    request: Any


class _Kept(NamedTuple):
    transport: "ScriptedTransport"
    version: int
    correlation_id: int
    asked: ScriptedRequest


class ScriptedTransport:
    """A client's end of a connection to a scripted broker."""

    can_send_files = False
    peer_principal: str | None = None

    def __init__(self, brokers: "ScriptedBrokers", node_id: int) -> None:
        self.peer_host = f"broker-{node_id}"
        self.node_id = node_id
        self.inbox = bytearray()
        self.is_closed = False
        self.is_broken = False
        self.watcher: Watcher | None = None
        self._brokers = brokers
        self._unread = bytearray()

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        if self.inbox:
            count = min(len(buffer), len(self.inbox))
            buffer[:count] = self.inbox[:count]
            del self.inbox[:count]
            return count
        if self.is_broken:
            raise ConnectionResetError(errno.ECONNRESET, "reset by the test")
        raise BlockingIOError(errno.EAGAIN, "nothing has come")

    def send(self, data: Buffer, /) -> int:
        if self.is_broken:
            raise BrokenPipeError(errno.EPIPE, "reset by the test")
        self._unread += data
        return len(data)

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: Any, position: int, size: int) -> int:
        raise AssertionError("a client sends no files")

    def cold_send(self, file: Any, position: int, size: int) -> Any:
        raise AssertionError("a client sends no files")

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self.watcher = watcher

    def close(self) -> None:
        self.is_closed = True
        self.watcher = None

    def work(self) -> bool:
        """Takes requests, and has the client receive answers; returns whether there was something to do."""
        if self.is_closed:
            return False
        received, self._unread = self._unread, bytearray()
        position = 0
        while position < len(received):
            end = position + 4 + int.from_bytes(received[position : position + 4], "big")
            self._brokers.take(self, bytes(received[position + 4 : end]))
            position = end
        if (self.inbox or self.is_broken) and self.watcher is not None:
            self.watcher.on_readable()
            return True
        return bool(received)


class _Dialling:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


_TELEMETRY: Final = ("GetTelemetrySubscriptions", "PushTelemetry")


class ScriptedBrokers:
    """Broker `n` of `nodes` is at `broker-n:9092`. Partitions are led by the nodes in turn."""

    def __init__(
        self,
        nodes: Sequence[int] = (1,),
        topics: Mapping[str, int] | None = None,
        *,
        newest: Mapping[str, int] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.nodes = list(nodes)
        self.topics = dict(topics or {})
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        """Partitions that have another leader than by turns: node and epoch."""
        self.newest = dict(newest or {})
        """APIs that are served up to an older version than ours; -1 for not at all."""
        self.features = dict(features or {})
        self.unreachable: set[int] = set()
        self.transcript: list[ScriptedRequest] = []
        self.problems: list[Exception] = []
        """What was reported as a bug. `run` raises the first."""
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.lines: list[Line] = []
        """What was logged."""
        log = ClientLog(self.timers.now_s, self.lines.append)
        self.world = ClientWorld(self.clock, self.timers, Random(0), self, self.problems.append, log=log)
        self._answers: dict[str, Any] = {}
        self._transports: list[ScriptedTransport] = []
        self._dialled: list[Callable[[], None]] = []
        self._kept: list[_Kept] = []

    # --- what a test says and sees ---

    @property
    def bootstrap(self) -> str:
        return ",".join(f"broker-{node_id}:9092" for node_id in self.nodes)

    def answer(self, api: str, answer: Any) -> None:
        """How an API is answered from now on: a function, a message, `DROP`, `KEEP`, or a list, taken one by one."""
        self._answers[api] = list(answer) if isinstance(answer, list | tuple) else answer

    def asked(self, api: str) -> list[Any]:
        """The requests of that API so far."""
        return [one.request for one in self.transcript if one.api == api]

    def run(self) -> None:
        """Until nothing moves without time."""
        for _ in range(_MOST_STEPS):
            if not self._step():
                break
        else:
            raise AssertionError("client and brokers never come to rest")
        if self.problems:
            raise self.problems[0]

    def advance(self, by_ms: int) -> None:
        """Time passes, a millisecond at a time where something is due."""
        end_us = self.clock.elapsed_us() + by_ms * 1000
        self.run()
        while self.timers.agenda.next_us() <= end_us:
            self.timers.agenda.fire_next()
            self.run()
        self.timers.agenda.run_until(end_us)
        self.run()

    def drop_connections(self, node_id: int | None = None) -> None:
        for transport in self._transports:
            if node_id is None or transport.node_id == node_id:
                transport.is_broken = True

    def release(self, answer: Any = None) -> int:
        """Answers what was kept, in order, with what `answer` or the API's function says now."""
        kept, self._kept = self._kept, []
        for one in kept:
            made = self._made(one.asked) if answer is None else answer
            made = made(one.asked.node_id, one.version, one.asked.request) if callable(made) else made
            self._give(one.transport, one.version, one.correlation_id, made, one.asked)
        return len(kept)

    @property
    def open_connections(self) -> int:
        return sum(not one.is_closed for one in self._transports)

    # --- the port Dialer ---

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> _Dialling:
        dialling = _Dialling()
        node_id = int(host.removeprefix("broker-"))

        def connect() -> None:
            if dialling.is_cancelled:
                return
            if node_id in self.unreachable or node_id not in self.nodes:
                failed(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
                return
            transport = ScriptedTransport(self, node_id)
            self._transports.append(transport)
            then(transport)

        self._dialled.append(connect)
        return dialling

    # --- how it works ---

    def _step(self) -> bool:
        dialled, self._dialled = self._dialled, []
        for connect in dialled:
            connect()
        moved = bool(dialled)
        for transport in list(self._transports):
            moved |= transport.work()
        self._transports = [one for one in self._transports if not one.is_closed]
        return moved

    def take(self, transport: ScriptedTransport, frame: bytes) -> None:
        header, request = decode_request(frame)
        api = all_apis()[header.request_api_key].name
        asked = ScriptedRequest(transport.node_id, api, header.request_api_version, request)
        self.transcript.append(asked)
        answer = self._made(asked)
        made = answer(asked.node_id, asked.version, request) if callable(answer) else answer
        self._give(transport, asked.version, header.correlation_id, made, asked)

    def _made(self, asked: ScriptedRequest) -> Any:
        scripted = self._answers.get(asked.api)
        if isinstance(scripted, list):
            assert scripted, f"a {asked.api} too many: {asked.request}"
            return scripted.pop(0)
        if scripted is not None:
            return scripted
        if asked.api == all_apis()[_API_VERSIONS].name:
            return self.versions()
        if asked.api == all_apis()[_METADATA].name:
            return self.metadata(asked.request)
        raise AssertionError(f"the test does not say how {asked.api} is answered")

    def _give(
        self, transport: ScriptedTransport, version: int, correlation_id: int, made: Any, asked: ScriptedRequest
    ) -> None:
        if isinstance(made, str) and made == DROP:
            transport.is_broken = True
        elif isinstance(made, str) and made == KEEP:
            self._kept.append(_Kept(transport, version, correlation_id, asked))
        elif isinstance(made, bytes):
            transport.inbox += made  # of something that is no broker
        elif made is not None:
            assert isinstance(made, Message), f"no answer to {asked.api}: {made!r}"
            transport.inbox += encode_response(made, version, correlation_id)

    def versions(self) -> ApiVersionsResponse:
        versions = []
        for api in all_apis().values():
            newest = min(self.newest.get(api.name, api.stable_versions.stop - 1), api.stable_versions.stop - 1)
            if api.name in _TELEMETRY and api.name not in self._answers:
                continue  # Clients would ask by themselves, in every test.
            if api.stable_versions and newest >= api.stable_versions.start and "broker" in api.listeners:
                one = ApiVersionsResponse.ApiVersion(
                    api_key=api.key, min_version=api.stable_versions.start, max_version=newest
                )
                versions.append(one)
        features = [
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in self.features.items()
        ]
        return ApiVersionsResponse(api_keys=versions, finalized_features=features)

    def metadata(self, request: Any) -> MetadataResponse:
        """What every broker says of the cluster."""
        names = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=node_id, host=f"broker-{node_id}", port=9092)
            for node_id in self.nodes
        ]
        return MetadataResponse(
            brokers=brokers,
            controller_id=self.nodes[0],
            cluster_id="scripted",
            topics=[self._topic(name) for name in names],
        )

    def topic_id(self, name: str) -> Uuid:
        return Uuid(name.encode().ljust(16, b"\1")[:16])

    def _topic(self, name: str) -> MetadataResponse.MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponse.MetadataResponseTopic(error_code=3, name=name)
        partitions = []
        for index in range(self.topics[name]):
            leader, epoch = self.leaders.get((name, index), (self.nodes[index % len(self.nodes)], 0))
            partitions.append(
                MetadataResponse.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=epoch,
                    replica_nodes=list(self.nodes),
                    isr_nodes=list(self.nodes),
                )
            )
        return MetadataResponse.MetadataResponseTopic(name=name, topic_id=self.topic_id(name), partitions=partitions)
