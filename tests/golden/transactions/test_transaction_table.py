"""In every state our transaction coordinator answers each request of each producer as Apache Kafka 4.3.1's does.

The table was made by asking Apache Kafka the same, and `tests/interop` asks it again.
"""

from collections.abc import Iterator
from typing import Any

from ottla.wire.message import Message
from ottla.wire.messages import AllocateProducerIdsResponse, FeatureLevelRecord
from tests.golden.transactions.transaction_scenes import NEW, PENDING, WRITTEN, log_request
from tests.golden.transactions.transaction_table import (
    QUESTIONS,
    WAITS,
    Cluster,
    Table,
    answer,
    askers,
    made_table,
    pending_scene,
    read_facts,
)
from tests.unit.broker.brokers import NOW_MS, Reply, TestNode

FACTS = read_facts()
COORDINATOR = "__transaction_state"
OTHER = 2
ANSWERS_WITHIN_MS = 500
FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}


class Node(TestNode):
    """It coordinates transactions and groups, and leads `orders`; `held` is led by another node, which is silent."""

    __test__ = False

    def __init__(self, transaction_version: int = NEW) -> None:
        super().__init__()
        self.commit(FeatureLevelRecord(name="transaction.version", feature_level=transaction_version))
        for name in (COORDINATOR, "__consumer_offsets"):
            self.create_topic(name, cleanup_policy="compact")
        self.create_topic("orders")
        self.create_topic("held", replicas=(OTHER,), leader=OTHER)
        self.peers.is_held = True
        self.controller.replies.append(AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=500_000))

    def send(self, request: Message, version: int, client_id: str | None = None) -> Any:
        return self.outcome_of(self.ask(request, version, client_id))

    def outcome_of(self, reply: Reply) -> Any:
        """What brokers ask of each other again takes a moment."""
        for _ in range(ANSWERS_WITHIN_MS // 10):
            if not reply.is_here:
                self.timers.advance(10)
        return reply.message if reply.is_here else WAITS

    def load_anew(self) -> None:
        self.change_partition(COORDINATOR, leader=1)
        for _ in range(20):
            self.timers.advance(10)

    def has_followers(self, there_are: bool) -> None:
        """While it has one, which does not fetch, nothing is committed to the coordinator's log."""
        replicas = (1, OTHER) if there_are else (1,)
        self.change_partition(COORDINATOR, replicas=replicas, isr=replicas)


def asked_of_ours() -> Table:
    node = Node()
    for title in WRITTEN:
        reply = node.send(log_request(title, NOW_MS), 12, "__admin_client")
        assert not reply.responses[0].partition_responses[0].error_code
    node.load_anew()
    older = Node(0)
    return made_table(Cluster(node.send, lambda: node.timers.advance(10))) | made_table(
        Cluster(older.send, lambda: older.timers.advance(10), 0)
    )


def differences(ours: Table) -> Iterator[tuple[tuple[str, str, str], str, str]]:
    """State, request and producer; Kafka's answer; ours."""
    for state, row in ours.items():
        for question, cells in row.items():
            for producer, said in cells.items():
                kafkas = FACTS[state][question].get(producer, "is not asked")
                if kafkas != said:
                    yield (state, question, producer), kafkas, said


def is_deliberate(cell: tuple[str, str, str], kafkas: str, said: str) -> bool:
    """Where InitProducerId of ours is told apart from Kafka's by more than its answer."""
    state, question, producer = cell
    if not (question.startswith("InitProducerId") and state.startswith("log:")):
        return False
    if kafkas == "UNKNOWN_SERVER_ERROR":
        # Kafka's coordinator asserts that no epoch is exhausted there, and answers with what went wrong in it.
        return said in FENCED or is_given_again(producer, said)
    # Kafka's has forgotten, when it is loaded, in which epoch the last end of a transaction was asked for. Ours finds
    # that in the log, and gives the answer that was lost again.
    return kafkas in FENCED and "Complete" in state and is_given_again(producer, said)


def is_given_again(producer: str, said: str) -> bool:
    return producer in ("epoch - 1", "old id, last epoch") and said.startswith("NONE same/")


def test_in_every_state_each_request_is_answered_as_apache_kafka_does() -> None:
    """One test, because the table is asked for as a whole: each worker of the tests would have to."""
    ours = asked_of_ours()
    assert {state for state in FACTS if not state.startswith("pending")} == ours.keys()
    differing = [
        f"{', '.join(cell)}: Kafka {kafkas}, we {said}"
        for cell, kafkas, said in differences(ours)
        if not is_deliberate(cell, kafkas, said)
    ]
    assert not differing, "\n".join(differing)


# While the records of a transition wait for a follower


def asked_in_transition(*, is_pending: bool) -> dict[tuple[str, str, str], str]:
    """What is answered in the end, each time of a transactional id of its own. Nothing is while a transition waits."""
    node = Node()
    answers: dict[tuple[str, str, str], str] = {}
    for title, pending in PENDING.items():
        for words, question in QUESTIONS.items():
            for producer in FACTS[f"pending: {title}"][words]:
                scene, before = pending_scene(node.send, title, f"{words} {producer}")
                node.has_followers(is_pending)
                node.ask(pending.request(scene), pending.version)
                has = askers(question, scene, before)[producer]
                reply = node.ask(question.make(scene.name, has), question.version)
                assert not (is_pending and reply.is_here), (title, words, producer)
                node.has_followers(False)
                answers[title, words, producer] = answer(node.outcome_of(reply), scene, before)
    return answers


def test_where_apache_kafka_asks_to_come_again_because_a_transition_is_pending_ours_waits_for_it() -> None:
    """Kafka grants nothing meanwhile. Ours neither: it answers when the transition is committed, and by what it did.

    Or it asks to come again, too: where markers are to be written then.
    """
    granted = {
        question
        for state, row in FACTS.items()
        for question, cells in row.items()
        if state.startswith("pending") and any(said.startswith("NONE") for said in cells.values())
    }
    assert granted == {"AddPartitionsToTxn v5, verify"}, "which looks, and changes nothing"
    afterwards = asked_in_transition(is_pending=False)
    differing = [
        f"{', '.join(cell)}: {said}, and afterwards {afterwards[cell]}"
        for cell, said in asked_in_transition(is_pending=True).items()
        if said not in (afterwards[cell], "CONCURRENT_TRANSACTIONS")
    ]
    assert not differing, "\n".join(differing)
