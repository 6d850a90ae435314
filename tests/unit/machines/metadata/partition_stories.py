"""What may happen to a partition among five brokers: moves, ISRs, brokers that go and come, elections.

`kafka_partitions.txt` has what became of the partition with Apache Kafka 4.3.1's controller, step by step. To ask it
again, which needs Java and Maven:

    python -m tests.unit.machines.metadata.record_kafka_partitions

Some stories are told on purpose: those of a move that is called off, changed or taken back while it is under way, as
`kafka-reassign-partitions` does with the assignment that it printed before. The others are drawn from a seed.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterPartitionRequest, CreateTopicsRequest
from tests.unit.machines.metadata.admin_scenes import alter, assigned, create, delete, elect, reassign
from tests.unit.machines.metadata.controllers import ControllerUnderTest

BROKERS = (11, 12, 13, 14, 15)
DRAWN = 300

Step = tuple[Any, ...]


class Story(NamedTuple):
    replicas: tuple[int, ...]
    min_insync_replicas: int
    may_elect_uncleanly: bool
    steps: tuple[Step, ...]


def stories() -> Iterator[Story]:
    for replicas, *steps in _TOLD:
        yield Story(replicas, 1, False, tuple(steps))
    for seed in range(DRAWN):
        yield _drawn(Random(seed))


def to(*replicas: int) -> Step:
    return "reassign", replicas


def isr(*replicas: int) -> Step:
    return "isr", replicas


CANCEL: Step = ("reassign", None)

_TOLD: Sequence[tuple[Any, ...]] = [
    # One replica is exchanged, and then the old ones are named, in their order and in another.
    ((11, 12, 13), to(12, 13, 14), to(11, 12, 13)),
    ((11, 12, 13), to(12, 13, 14), to(13, 12, 11)),
    ((11, 12, 13), to(12, 13, 14), isr(11, 12, 13, 14)),
    ((11, 12, 13), isr(11), to(12, 13, 14), isr(11, 14), isr(14, 12)),
    ((11, 12, 13), isr(11), to(12, 13, 14), to(11, 12, 13), isr(11, 12, 13)),
    ((11, 12, 13), isr(11), to(12, 13, 14), to(11, 12, 13), isr(11, 12), CANCEL),
    ((11, 12, 13), to(12, 13, 14), to(12, 13, 14), isr(11, 12, 13, 14)),
    ((11, 12, 13), to(12, 13, 14), to(14, 13, 12), isr(11, 12, 13, 14)),
    ((11, 12, 13), to(12, 13, 14), CANCEL, CANCEL),
    # Another target, which keeps some of what is added or removed.
    ((11, 12, 13), to(12, 13, 14), to(12, 13, 15), isr(11, 12, 13, 15)),
    ((11, 12, 13), to(12, 13, 14), to(12, 13, 15), CANCEL),
    ((11, 12, 13), to(12, 13, 14), to(12, 13, 15), to(11, 12, 13)),
    ((11, 12, 13), to(12, 13, 14), to(11, 13, 14), isr(11, 12, 13, 14)),
    ((11, 12, 13), to(13, 14, 15), to(11, 14, 15), isr(11, 12, 13, 14), isr(11, 12, 13, 14, 15)),
    ((11, 12, 13), to(13, 14, 15), isr(11, 12, 13, 14), to(11, 12, 14), isr(11, 12, 14)),
    ((11, 12, 13), to(13, 14, 15), isr(11, 12, 13, 14), to(11, 12, 13), isr(11, 12, 13)),
    ((11, 12), to(13, 14), to(11, 12)),
    ((11, 12), to(13, 14), to(13, 12), isr(11, 12, 13)),
    (
        (11, 12),
        to(13, 14),
        isr(11, 12, 13),
        to(
            13,
        ),
        isr(11, 13),
    ),
    # More and fewer replicas.
    ((11, 12), to(11, 12, 13), to(11, 12)),
    (
        (11, 12),
        to(11, 12, 13),
        to(
            11,
        ),
    ),
    ((11, 12), to(11, 12, 13), CANCEL),
    ((11, 12), to(11, 12, 13, 14), to(11, 12, 13), isr(11, 12, 13)),
    (
        (11, 12, 13),
        to(
            11,
        ),
    ),
    (
        (11, 12, 13),
        isr(11),
        to(
            12,
        ),
        CANCEL,
    ),
    (
        (11, 12, 13),
        isr(11),
        to(
            12,
        ),
        to(11, 12, 13),
    ),
    (
        (11, 12, 13),
        isr(11),
        to(
            12,
        ),
        to(11, 12),
        isr(11, 12),
    ),
    (
        (11, 12, 13),
        isr(11),
        to(12, 13),
        to(
            13,
        ),
        isr(11, 13),
    ),
    (
        (11, 12, 13),
        isr(11),
        to(12, 14),
        to(
            12,
        ),
        isr(11, 12),
    ),
    # The number of replicas is to stay.
    ((11, 12, 13), to(12, 13, 14), ("reassign with the same factor", (11, 12, 13))),
    ((11, 12, 13), to(12, 13, 14), ("reassign with the same factor", (11, 12, 14))),
    ((11, 12, 13), to(12, 13, 14), ("reassign with the same factor", (11, 12))),
    ((11, 12), to(11, 12, 13), ("reassign with the same factor", (11, 12))),
    ((11, 12), to(11, 12, 13), ("reassign with the same factor", (11, 12, 14))),
    # Nothing but the order.
    ((11, 12, 13), to(13, 12, 11), ("elect", 0)),
    ((11, 12, 13), to(11, 12, 13)),
    # Brokers go while it lasts.
    ((11, 12, 13), to(12, 13, 14), ("fence", 11), to(11, 12, 13), ("unfence", 11)),
    ((11, 12, 13), to(14, 15, 13), isr(11, 14), ("fence", 11), CANCEL, to(11, 12, 13), ("unfence", 11)),
    ((11, 12), to(13, 14), isr(11, 13, 14), isr(13, 14), CANCEL),
]


def _drawn(chance: Random) -> Story:
    some = lambda: tuple(chance.sample(BROKERS, chance.choice((1, 2, 2, 3, 3, 4))))  # noqa: E731
    replicas, steps = some(), list[Step]()
    for _ in range(chance.randint(2, 9)):
        match chance.choice(("to", "to", "to", "back", "cancel", "isr", "isr", "isr", "fence", "unfence", "other")):
            case "to":
                steps.append(to(*some()))
            case "back":
                steps.append(to(*chance.sample(replicas, len(replicas))))
            case "cancel":
                steps.append(CANCEL)
            case "isr":
                steps.append(isr(*some()))
            case "other":
                others = ("elect", chance.randrange(2)), ("min.insync.replicas", chance.randint(1, 3))
                steps.append(chance.choice(others))
            case kind:
                steps.append((kind, chance.choice(BROKERS)))
    return Story(replicas, chance.choice((1, 2)), chance.random() < 0.2, tuple(steps))


def tell(node: ControllerUnderTest, name: str, story: Story) -> Iterator[str]:
    """What becomes of the partition, a line a step. All brokers are there before and after it."""
    made = assigned(name, story.replicas)
    given = {
        "min.insync.replicas": str(story.min_insync_replicas),
        "unclean.leader.election.enable": str(story.may_elect_uncleanly).lower(),
    }
    made.configs = [CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in given.items()]
    assert node.ask(create(made)).topics[0].error_code == 0
    yield f"{_brokers(story.replicas)} {', '.join(f'{key} {value}' for key, value in given.items())}"
    for step in story.steps:
        error = _do(node, name, step)
        what = " ".join(_brokers(part) if isinstance(part, tuple) else str(part) for part in step)
        yield f"  {what}: {error.name}; {_shown(node.image.topics.by_name[name].partitions[0])}"
    node.ask(delete(name))
    for broker_id in BROKERS:
        node.heartbeat(broker_id)


def _do(node: ControllerUnderTest, name: str, step: Step) -> ErrorCode:
    match step:
        case ("reassign" | "reassign with the same factor") as kind, replicas:
            may_change = kind == "reassign"
            return _code(node.ask(reassign((name, 0, replicas), allow_change=may_change)).responses[0].partitions[0])
        case "isr", replicas:
            return _alter_isr(node, name, replicas)
        case "elect", kind:
            return _code(node.ask(elect(kind, (name, (0,)))).replica_election_results[0].partition_result[0])
        case "min.insync.replicas" as key, count:
            return _code(node.ask(alter((2, name, (0, key, str(count))))).responses[0])
        case kind, broker_id:
            return _code(node.heartbeat(broker_id, want_fence=kind == "fence"))


def _alter_isr(node: ControllerUnderTest, name: str, replicas: tuple[int, ...]) -> ErrorCode:
    """The leader asks for it, and stays in it."""
    topic = node.image.topics.by_name[name]
    now = topic.partitions[0]
    if now.leader < 0:
        return ErrorCode.LEADER_NOT_AVAILABLE
    wanted = AlterPartitionRequest.PartitionData(leader_epoch=now.leader_epoch, partition_epoch=now.partition_epoch)
    ids = sorted({now.leader, *(set(replicas) & set(now.replicas))})
    epochs = {broker_id: node.image.brokers.by_id[broker_id].epoch for broker_id in ids}
    state = AlterPartitionRequest.BrokerState
    wanted.new_isr_with_epochs = [state(broker_id=one, broker_epoch=epoch) for one, epoch in epochs.items()]
    asked = AlterPartitionRequest.TopicData(topic_id=topic.id, partitions=[wanted])
    request = AlterPartitionRequest(broker_id=now.leader, broker_epoch=epochs[now.leader], topics=[asked])
    return _code(node.ask(request).topics[0].partitions[0])


def _code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def _brokers(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "nobody"


def _shown(partition: PartitionImage) -> str:
    said = f"{_brokers(partition.replicas)} isr {_brokers(partition.isr)} leader {partition.leader}"
    said += f" epochs {partition.leader_epoch}/{partition.partition_epoch}"
    more = {
        "adding": partition.adding_replicas,
        "removing": partition.removing_replicas,
        "elr": partition.eligible_leader_replicas,
        "last known elr": partition.last_known_elr,
    }
    said += "".join(f" {word} {_brokers(ids)}" for word, ids in more.items() if ids)
    return said + (" recovering" if partition.leader_recovery_state else "")
