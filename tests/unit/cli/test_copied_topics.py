"""`ottla copy` passes over nothing in silence: places that are gone or of other topics, partitions and settings."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Consumer, NewTopic, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.main import main
from ottla.cli.records import copy_command
from ottla.cli.records.copied_topics import differences, once_known
from ottla.client.admin.configs import ConfigResource, ConfigSource
from ottla.errors import UnknownTopicOrPartition
from ottla.testing import Broker

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

WAIT_S = 60
PLACES = ["state", "group", "exactly-once"]


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def admin(node: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        yield admin


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name.replace("[", "-").replace("]", ""))[-100:]


Copy = Callable[..., str]


@pytest.fixture
def copy(node: Broker, capfd: pytest.CaptureFixture[str]) -> Copy:
    """Runs `ottla copy` and returns what it said."""

    def command(*words: str, status: int = 0) -> str:
        capfd.readouterr()
        found = main(["copy", *words, "-b", node.bootstrap])
        said = capfd.readouterr().err
        assert found == status, said
        return said

    return command


def place(how: str, name: str, directory: Path) -> list[str]:
    return {
        "state": ["--state", str(directory / "state.json")],
        "group": ["--group", f"{name}-place"],
        "exactly-once": ["--group", f"{name}-place", "--exactly-once"],
    }[how]


def send(node: Broker, topic: str, numbers: range, partition: int = 0) -> None:
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for number in numbers:
            producer.send(topic, str(number).encode(), partition=partition)


def numbers_in(node: Broker, topic: str) -> list[int]:
    """Of all partitions, one after the other."""
    found = []
    with Consumer(bootstrap_servers=node.bootstrap, isolation_level="read_committed") as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            found += [(record.partition, record.offset, int(record.value)) for record in consumer.poll(0.5)]
    return [number for _, _, number in sorted(found)]


def make_again(admin: Admin, topic: str) -> None:
    admin.delete_topics([topic]).raise_first()
    admin.create_topics([NewTopic(topic, 1)]).raise_first()


# Places


@pytest.mark.parametrize("how", PLACES)
def test_records_that_were_deleted_before_they_were_copied_are_told(
    how: str, node: Broker, admin: Admin, name: str, copy: Copy, tmp_path: Path
) -> None:
    node.create_topic(name)
    send(node, name, range(50))
    copy(name, f"{name}-copy", *place(how, name, tmp_path))
    send(node, name, range(50, 300))
    admin.delete_records({TopicPartition(name, 0): 100}).raise_first()
    said = copy(name, f"{name}-copy", *place(how, name, tmp_path))
    assert f"{name}-0: 50 offsets, 50 to 99, were deleted before they were copied; the copy continues at 100" in said
    assert "200 records copied" in said
    assert said.rstrip().endswith(f"50 gone from {name} before they were copied")
    assert numbers_in(node, f"{name}-copy") == [*range(50), *range(100, 300)]


@pytest.mark.parametrize("follow", [[], ["--follow", "--max", "20"]], ids=["to the end", "following"])
def test_records_that_are_deleted_while_they_are_copied_are_told(
    follow: list[str], node: Broker, admin: Admin, name: str, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name.replace(" ", "-")
    node.create_topic(name)
    send(node, name, range(30))
    begin = copy_command._Copying._read_from

    def begin_too_late(copying: Any, starts: dict[TopicPartition, int]) -> None:
        admin.delete_records({TopicPartition(name, 0): 10}).raise_first()
        begin(copying, starts)

    monkeypatch.setattr(copy_command._Copying, "_read_from", begin_too_late)
    said = copy(name, f"{name}-copy", *follow)
    assert f"{name}-0: 10 offsets, 0 to 9, were deleted before they were copied" in said
    assert numbers_in(node, f"{name}-copy") == list(range(10, 30))


def test_a_place_behind_the_end_is_refused(node: Broker, name: str, copy: Copy, tmp_path: Path) -> None:
    """As after an unclean election, which cuts the log."""
    node.create_topic(name)
    send(node, name, range(5))
    state = tmp_path / "state.json"
    copy(name, f"{name}-copy", "--state", str(state))
    kept = json.loads(state.read_text())
    state.write_text(json.dumps({**kept, "offsets": {"0": 7}}))
    said = copy(name, f"{name}-copy", "--state", str(state), status=1)
    assert f"{name}-0 ends at offset 5, before 7, up to which it was copied" in said


@pytest.mark.parametrize("how", PLACES)
def test_a_source_that_was_made_again_is_not_gone_on_with(
    how: str, node: Broker, admin: Admin, name: str, copy: Copy, tmp_path: Path
) -> None:
    node.create_topic(name)
    send(node, name, range(10))
    copy(name, f"{name}-copy", *place(how, name, tmp_path))
    make_again(admin, name)
    send(node, name, range(100, 130))
    if how == "group":  # the broker has forgotten the group's offsets together with the topic
        copy(name, f"{name}-copy", *place(how, name, tmp_path))
        assert numbers_in(node, f"{name}-copy") == [*range(10), *range(100, 130)]
        return
    said = copy(name, f"{name}-copy", *place(how, name, tmp_path), status=1)
    assert f"{name} was deleted and made again since" in said
    assert numbers_in(node, f"{name}-copy") == list(range(10))


@pytest.mark.parametrize("how", ["state", "group"])
def test_a_destination_that_was_made_again_is_not_gone_on_with(
    how: str, node: Broker, admin: Admin, name: str, copy: Copy, tmp_path: Path
) -> None:
    node.create_topic(name)
    send(node, name, range(10))
    copy(name, f"{name}-copy", *place(how, name, tmp_path))
    admin.delete_topics([f"{name}-copy"]).raise_first()
    said = copy(name, f"{name}-copy", *place(how, name, tmp_path), status=1)
    assert f"{name}-copy was deleted and made again since" in said


@pytest.mark.parametrize("how", PLACES)
def test_two_sources_do_not_share_a_place(how: str, node: Broker, name: str, copy: Copy, tmp_path: Path) -> None:
    one, two = f"{name}-one", f"{name}-two"
    node.create_topic(one)
    node.create_topic(two)
    send(node, one, range(10))
    send(node, two, range(100, 105))
    copy(one, f"{name}-copy", *place(how, name, tmp_path))
    if how == "group":  # a group keeps offsets of both
        copy(two, f"{name}-copy", *place(how, name, tmp_path))
        assert numbers_in(node, f"{name}-copy") == [*range(10), *range(100, 105)]
        return
    said = copy(two, f"{name}-copy", *place(how, name, tmp_path), status=1)
    assert f"has the place of a copy whose source was {one} (topic id " in said
    assert f", and not {two} (" in said


def test_two_destinations_do_not_share_a_group(node: Broker, name: str, copy: Copy) -> None:
    node.create_topic(name)
    send(node, name, range(10))
    copy(name, f"{name}-copy", "--group", f"{name}-place")
    said = copy(name, f"{name}-other", "--group", f"{name}-place", status=1)
    assert f"the group {name}-place has the place of a copy whose destination was {name}-copy (" in said
    assert said.rstrip().endswith("Use another group")


def test_a_group_of_readers_is_no_place_of_a_copy(node: Broker, name: str, copy: Copy) -> None:
    """Of the destination, its offsets would be any numbers; of the source, they are where to begin, and it is told."""
    node.create_topic(name)
    node.create_topic(f"{name}-copy")
    send(node, name, range(10))
    for topic in (name, f"{name}-copy"):
        with Consumer(bootstrap_servers=node.bootstrap, group_id=f"{name}-readers") as consumer:
            consumer.commit({TopicPartition(topic, 0): 4})
    said = copy(name, f"{name}-copy", "--group", f"{name}-readers", "--exactly-once", status=1)
    assert f"the group {name}-readers is at offset 4 of {name}-copy-0, and no copy kept it" in said
    said = copy(name, f"{name}-copy", "--group", f"{name}-readers")
    assert f"the group {name}-readers is at offset 4 of {name}-0: begins there" in said
    assert numbers_in(node, f"{name}-copy") == list(range(4, 10))


def test_a_topic_is_not_copied_to_itself_under_another_address(node: Broker, name: str, copy: Copy) -> None:
    node.create_topic(name)
    send(node, name, range(5))
    another = node.bootstrap.replace("127.0.0.1", "localhost")
    assert another != node.bootstrap
    said = copy(name, name, "--to-server", another, status=1)
    assert f"source and destination are the same topic: {name} (topic id " in said
    assert numbers_in(node, name) == list(range(5))


def test_records_behind_an_open_transaction_are_told(node: Broker, name: str, copy: Copy, tmp_path: Path) -> None:
    node.create_topic(name)
    state = ["--state", str(tmp_path / "state.json")]
    send(node, name, range(2))
    with Producer(bootstrap_servers=node.bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin()
        producer.send(name, b"2")
        producer.flush()
        send(node, name, range(3, 5))
        said = copy(name, f"{name}-copy", *state)
        assert f"{name}-0: a transaction is open, and 3 offsets from 2 on are not copied" in said
        producer.commit()
    assert "transaction" not in copy(name, f"{name}-copy", *state)
    assert numbers_in(node, f"{name}-copy") == list(range(5))


# The source while it is copied


@pytest.mark.parametrize("is_made_again", [False, True], ids=["deleted", "made-again"])
def test_a_source_that_goes_while_it_is_copied_ends_the_copy(
    is_made_again: bool, node: Broker, admin: Admin, name: str, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic(name)
    send(node, name, range(5))
    begin = copy_command._Copying._read_from

    def begin_too_late(copying: Any, starts: dict[TopicPartition, int]) -> None:
        begin(copying, starts)
        if is_made_again:
            make_again(admin, name)
        else:
            admin.delete_topics([name]).raise_first()

    monkeypatch.setattr(copy_command._Copying, "_read_from", begin_too_late)
    said = copy(name, f"{name}-copy", "--follow", "--set", "allow.auto.create.topics=false", status=1)
    assert ("was deleted and made again while" if is_made_again else "was deleted while it was copied") in said


def wait_for_end(consumer: Consumer, partition: TopicPartition, offset: int) -> None:
    while consumer.end_offsets([partition])[partition] < offset:
        consumer.list_topics()


@pytest.mark.parametrize("how", [*PLACES, "keep-offsets"])
def test_partitions_that_are_added_are_copied(how: str, node: Broker, admin: Admin, name: str, tmp_path: Path) -> None:
    """While the copy follows, and while it was stopped."""
    node.create_topic(name, partitions=1)
    node.create_topic(f"{name}-copy", partitions=1)
    send(node, name, range(5))
    words = ["--keep-offsets"] if how == "keep-offsets" else place(how, name, tmp_path)
    begin = [sys.executable, "-m", "ottla.cli.main", "copy", name, f"{name}-copy", "-b", node.bootstrap, *words]
    with subprocess.Popen([*begin, "--follow", "--max", "9"], stderr=subprocess.PIPE, text=True) as process:
        with Consumer(bootstrap_servers=node.bootstrap) as consumer:
            wait_for_end(consumer, TopicPartition(f"{name}-copy", 0), 5)
        admin.create_partitions({name: 2}).raise_first()
        send(node, name, range(100, 104), partition=1)
        said = process.communicate(timeout=WAIT_S)[1]
    assert process.returncode == 0, said
    assert f"{name}-copy has 2 partitions now, as {name} has" in said
    assert numbers_in(node, f"{name}-copy") == [*range(5), *range(100, 104)]
    admin.create_partitions({name: 3}).raise_first()
    send(node, name, range(200, 203), partition=2)
    assert main(begin[3:]) == 0
    assert numbers_in(node, f"{name}-copy") == [*range(5), *range(100, 104), *range(200, 203)]


# Settings of the destination

OF_THE_SOURCE = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "max.message.bytes": "5000000",
    "message.timestamp.after.max.ms": "7200000",
    "delete.retention.ms": "1234567",
    "compression.type": "zstd",
}


def settings(admin: Admin, topic: str) -> dict[str, str | None]:
    """Those that the topic has itself."""
    resource = ConfigResource.topic(topic)
    found = admin.describe_configs([resource])[resource]
    return {name: entry.value for name, entry in found.items() if entry.source is ConfigSource.DYNAMIC_TOPIC}


def test_a_destination_is_made_with_the_settings_of_its_source(
    node: Broker, admin: Admin, name: str, copy: Copy
) -> None:
    others = {"min.insync.replicas": "1", "segment.bytes": "2000000"}
    admin.create_topics([NewTopic(name, 1, config={**OF_THE_SOURCE, **others})]).raise_first()
    with Producer(bootstrap_servers=node.bootstrap, max_request_size=4_000_000) as producer:
        producer.send(name, b"v" * 3_000_000, b"k", timestamp_ms=1000)
    assert copy(name, f"{name}-copy").startswith("1 record copied")
    made = settings(admin, f"{name}-copy")
    assert {key: value for key, value in made.items() if key in OF_THE_SOURCE} == OF_THE_SOURCE
    assert "segment.bytes" not in made


def test_a_copy_keeps_the_times_that_a_source_gave_its_records(
    node: Broker, admin: Admin, name: str, copy: Copy
) -> None:
    """And takes old ones, which the source took when they were new."""
    limits = {"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": "1000"}
    admin.create_topics([NewTopic(name, 1, config=limits)]).raise_first()
    send(node, name, range(3))
    copy(name, f"{name}-copy")
    made = settings(admin, f"{name}-copy")
    assert made.get("message.timestamp.type", "CreateTime") == "CreateTime"
    assert "message.timestamp.before.max.ms" not in made


def test_a_setting_of_the_source_is_kept_under_other_defaults(node: Broker, admin: Admin, name: str) -> None:
    node.create_topic(name)
    send(node, name, range(3))
    with Broker({"log.retention.ms": 1000, "message.max.bytes": 2000}) as other:
        assert main(["copy", name, name, "-b", node.bootstrap, "--to-server", other.bootstrap, "-q"]) == 0
        with Admin(bootstrap_servers=other.bootstrap) as its_admin:
            made = settings(its_admin, name)
        assert numbers_in(other, name) == list(range(3))
    assert (made["retention.ms"], made["max.message.bytes"]) == ("604800000", "1048588")


def test_a_destination_that_keeps_less_is_told_before_a_record_is_copied(
    node: Broker, admin: Admin, name: str, copy: Copy
) -> None:
    admin.create_topics(
        [NewTopic(name, 1, config={"retention.ms": "-1", "max.message.bytes": "5000000"})]
    ).raise_first()
    node.create_topic(f"{name}-copy")
    send(node, name, range(3))
    first, second, last = copy(name, f"{name}-copy").splitlines()
    kept = f"ottla copy: {name}-copy has"
    assert first.startswith(f"{kept} retention.ms=604800000, and {name} has -1: records are deleted earlier")
    assert second.startswith(f"{kept} max.message.bytes=1048588, and {name} has 5000000: large records are refused")
    assert last.startswith("3 records copied")
    assert copy(name, f"{name}-copy", "-q").count(kept) == 2


def test_a_broker_that_has_not_heard_of_a_new_topic_is_asked_again() -> None:
    answers: list[Any] = [UnknownTopicOrPartition("not yet"), UnknownTopicOrPartition("not yet"), "known"]

    def ask() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    assert once_known(ask) == "known"


@pytest.mark.parametrize(
    ("setting", "destination", "source", "is_told"),
    [
        ("retention.ms", "1000", "-1", True),
        ("retention.ms", "1000", "2000", True),
        ("retention.ms", "-1", "2000", False),
        ("retention.ms", "2000", "2000", False),
        ("retention.bytes", "5", "-1", True),
        ("cleanup.policy", "compact", "delete", True),
        ("cleanup.policy", "delete, compact", "compact,delete", False),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime", True),
        ("message.timestamp.type", "CreateTime", "LogAppendTime", False),
        ("message.timestamp.before.max.ms", "1000", "5000", True),
        ("compression.type", "zstd", "producer", False),
        ("delete.retention.ms", "1", "2", False),  # nothing is compacted there
    ],
)
def test_what_keeps_less_than_the_source_is_known(setting: str, destination: str, source: str, is_told: bool) -> None:
    assert bool(differences("copy", {setting: destination}, "source", {setting: source})) is is_told
