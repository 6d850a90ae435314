"""What a transaction coordinator answers in each state, to each request, of each producer: how the table is made.

A cell is an answer and what the coordinator has afterwards. Producer ids are of each cluster its own, so a cell says
whether an id is the one that the coordinator had (`same`), the one that was to come or has gone, or another.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import TxnOffsetCommitRequest
from tests.golden.transactions.transaction_scenes import (
    GROUP,
    LAST_EPOCH,
    NEW,
    NO_ID,
    OF_PROTOCOL_2,
    OLD,
    PENDING,
    REACHED,
    WRITTEN,
    Described,
    Has,
    Scene,
    add_request,
    broker_request,
    end_request,
    group_request,
    init_request,
    settle,
    written_id,
)

FACTS = Path(__file__).parent / "transactions-kafka-4.3.1.json"
OLDER = "transaction.version 0: "
"""Begins the names of states in a cluster of the first protocol."""

WAITS = "waits"
"""Instead of an answer that does not come."""

Table = dict[str, dict[str, dict[str, str]]]
"""By state, request and producer."""

Make = Callable[[str, Has], Message]


class Question(NamedTuple):
    """`protocol` is that of the clients that ask so."""

    make: Make
    version: int
    protocol: int = OLD

    @property
    def is_of_a_start(self) -> bool:
        """Asked by a producer that has nothing yet."""
        return self.make is _start


def _start(name: str, _has: Has) -> Message:
    return init_request(name, Has(-1, -1))


def _offsets(name: str, has: Has) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=GROUP,
        producer_id=has.producer_id,
        producer_epoch=has.producer_epoch,
        topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )


QUESTIONS: dict[str, Question] = {"InitProducerId v5, a start": Question(_start, 5)}
for _version in (3, 4, 5):
    QUESTIONS[f"InitProducerId v{_version}"] = Question(init_request, _version)
for _version in (1, 3):
    QUESTIONS[f"AddPartitionsToTxn v{_version}"] = Question(lambda name, has: add_request(name, has, "held"), _version)
QUESTIONS["AddPartitionsToTxn v5"] = Question(
    lambda name, has: broker_request(name, has, "held", verify_only=False), 5, NEW
)
QUESTIONS["AddPartitionsToTxn v5, verify"] = Question(
    lambda name, has: broker_request(name, has, "held", verify_only=True), 5
)
for _version in (1, 4):
    QUESTIONS[f"AddOffsetsToTxn v{_version}"] = Question(group_request, _version)
for _version in (3, 4, 5):
    QUESTIONS[f"TxnOffsetCommit v{_version}"] = Question(_offsets, _version, NEW if _version == 5 else OLD)
for _version in (1, 4, 5):
    for _committed, _words in ((True, "commit"), (False, "abort")):
        QUESTIONS[f"EndTxn v{_version}, {_words}"] = Question(
            lambda name, has, committed=_committed: end_request(name, has, committed=committed),
            _version,
            NEW if _version == 5 else OLD,
        )


def producers_of(scene: Scene, described: Described) -> dict[str, Has]:
    """Who asks: the producer that the coordinator has, others of its id, and those of other ids."""
    producer_id, epoch = described.has
    if producer_id == NO_ID:
        return {"another id": Has(777_777, 0)}
    before_and_after = {"current": 0, "epoch - 1": -1, "epoch - 2": -2, "epoch + 1": 1}
    found = {
        words: Has(producer_id, epoch + by)
        for words, by in before_and_after.items()
        if 0 <= epoch + by <= LAST_EPOCH + 1
    }
    found["another id"] = Has(777_777, epoch)
    if scene.first_id != NO_ID and producer_id == scene.first_id + 1:
        found["old id, last epoch"] = Has(scene.first_id, LAST_EPOCH)
        found["old id, epoch before"] = Has(scene.first_id, LAST_EPOCH - 1)
        found["old id, fenced epoch"] = Has(scene.first_id, LAST_EPOCH + 1)
    elif scene.first_id != NO_ID:
        found["next id"] = Has(scene.first_id + 1, 0)
    return found


class Cluster(NamedTuple):
    """What the table is made of: `send` waits for a reply or gives `WAITS`; `wait` lets a moment pass."""

    send: Callable[[Message, int], Any]
    wait: Callable[[], None]
    transaction_version: int = NEW


def made_table(cluster: Cluster) -> Table:
    """Of a cluster whose coordinator has read what was put into its log.

    With `transaction.version` 0 there is no second protocol, and the coordinator aborts as the first one does.
    """

    def by_requests(title: str) -> Callable[[int], Scene]:
        def make(number: int) -> Scene:
            scene = Scene(cluster.send, f"{title} #{number}, by requests")
            REACHED[title](scene)
            return scene

        return make

    def by_the_log(title: str) -> Callable[[int], Scene]:
        return lambda number: Scene(cluster.send, *written_id(title, number))

    if cluster.transaction_version < NEW:
        reached = [title for title in REACHED if title not in OF_PROTOCOL_2]
        return {OLDER + title: _row(_Scenes(by_requests(title), cluster.wait), OLD) for title in reached}
    rows = {title: _row(_Scenes(by_requests(title), cluster.wait)) for title in REACHED}
    return rows | {f"log: {title}": _row(_Scenes(by_the_log(title), cluster.wait)) for title in WRITTEN}


class _Scenes:
    """Scenes in the same state. One serves until an answer has changed it."""

    def __init__(self, make: Callable[[int], Scene], wait: Callable[[], None]) -> None:
        self._make = make
        self.wait = wait
        self._made = 0
        self._now: tuple[Scene, Described] | None = None

    def get(self) -> tuple[Scene, Described]:
        if self._now is None:
            scene = self._make(self._made)
            self._made += 1
            self._now = scene, settle(scene, self.wait)
        return self._now

    def used_up(self) -> None:
        self._now = None


def _row(scenes: _Scenes, protocol: int = NEW) -> dict[str, dict[str, str]]:
    return {
        title: {words: _asked(scenes, question, words) for words in askers(question, *scenes.get())}
        for title, question in QUESTIONS.items()
        if question.protocol <= protocol
    }


def askers(question: Question, scene: Scene, before: Described) -> dict[str, Has]:
    return {"": Has(-1, -1)} if question.is_of_a_start else producers_of(scene, before)


def _asked(scenes: _Scenes, question: Question, words: str) -> str:
    """A cell."""
    scene, before = scenes.get()
    has = askers(question, scene, before)[words]
    reply = scene.send(question.make(scene.name, has), question.version)
    after = settle(scene, scenes.wait)
    said = answer(reply, scene, before)
    if _error_of(reply) is ErrorCode.NONE or after != before:
        scenes.used_up()
    return said if after == before else f"{said} -> {after.state} {_has_text(after.has, scene, before)}"


def answer(reply: Any, scene: Scene, before: Described) -> str:
    """The error, and the producer id and epoch that the client is given."""
    if reply is WAITS:
        return WAITS
    has = Has(getattr(reply, "producer_id", -1), getattr(reply, "producer_epoch", -1))
    return f"{_error_of(reply).name} {_has_text(has, scene, before)}".strip()


def _has_text(has: Has, scene: Scene, before: Described) -> str:
    if has == (-1, -1):
        return ""
    known = {before.has.producer_id: "same"}
    if scene.first_id != NO_ID:
        known = {scene.first_id: "old", scene.first_id + 1: "next", **known}
    return f"{known.get(has.producer_id, 'other')}/{has.producer_epoch}"


def _error_of(reply: Any) -> ErrorCode:
    if reply is WAITS:
        return ErrorCode.NONE
    (code,) = {ErrorCode(code) for code in _codes(reply)} - {ErrorCode.NONE} or {ErrorCode.NONE}
    return code


def _codes(reply: Any) -> Iterator[int]:
    yield getattr(reply, "error_code", 0)
    for topic in getattr(reply, "topics", ()):
        yield from (one.error_code for one in topic.partitions)
    of_transactions = [one.topic_results for one in getattr(reply, "results_by_transaction", ())]
    for results in [getattr(reply, "results_by_topic_v3_and_below", ()), *of_transactions]:
        yield from (one.partition_error_code for topic in results for one in topic.results_by_partition)


# While records wait for a follower


def pending_scene(send: Callable[[Message, int], Any], title: str, name: str) -> tuple[Scene, Described]:
    """In the state before its request is asked. `name` tells it apart from others of this title."""
    scene = Scene(send, f"{title}, pending {name}")
    PENDING[title].reach(scene)
    return scene, settle(scene)


def asked_while_pending(
    send: Callable[[Message, int], Any], scene: Scene, before: Described
) -> dict[str, dict[str, str]]:
    """All questions to one that waits. None of them changes it."""
    return {
        title: {
            words: answer(send(question.make(scene.name, has), question.version), scene, before)
            for words, has in askers(question, scene, before).items()
        }
        for title, question in QUESTIONS.items()
    }


# The file


def read_facts() -> Table:
    return json.loads(FACTS.read_text())  # type: ignore[no-any-return]


def write_facts(table: Table) -> None:
    FACTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
