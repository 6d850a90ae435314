"""`kafka-topics`: creates, lists, describes, alters and deletes topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.base.ids import ZERO_UUID, parse_uuid
from ottla.cli.failures import FAILURES, Terse, error_text
from ottla.cli.json_output import print_json
from ottla.cli.options.checks import run_program
from ottla.cli.options.reading import Given
from ottla.cli.sessions import admin_of
from ottla.cli.text_tables import did_you_mean
from ottla.cli.topics.choosing import chosen
from ottla.cli.topics.topic_lines import Overrides, Reassigned, Wanted, json_of, lines_of
from ottla.cli.topics.topic_options import PROGRAM, check

if TYPE_CHECKING:
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin

_MOST_REPLICAS = 32767
_PARTITIONS_PER_RESPONSE = 2000


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    action = _ACTIONS[check(given)]
    with admin_of(given) as admin:
        try:
            action(admin, given)
            return 0
        except BrokenPipeError:
            raise  # the reader of our output has left: no failure of ours
        except FAILURES as problem:
            print(f"Error while executing topic command : {error_text(problem)}")
            return 1


def _create(admin: Admin, given: Given) -> None:
    from ottla.client.admin.topics import NewTopic
    from ottla.client.errors import TopicAlreadyExists

    name = given.text("topic")
    partitions, replication_factor = given.get_integer("partitions"), given.get_integer("replication-factor")
    assignment = _assignment(given.get("replica-assignment"))
    config = _config(given.all("config"))
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
            "collide. To avoid issues it is best to use either, but not both."
        )
    if replication_factor is not None and not 1 <= replication_factor <= _MOST_REPLICAS:
        raise Terse(f"The replication factor must be between 1 and {_MOST_REPLICAS} inclusive")
    if partitions is not None and partitions < 1:
        raise Terse("The partitions must be greater than 0")
    topic = NewTopic(name, partitions, replication_factor, dict(enumerate(assignment)) if assignment else None, config)
    try:
        admin.create_topics([topic], retry_on_quota=False).raise_first()
    except TopicAlreadyExists:
        if "if-not-exists" in given:
            return
        raise
    print(f"Created topic {name}.")


def _list(admin: Admin, given: Given) -> None:
    names = _names(admin, given)
    if "json" in given:
        print_json(names)
    else:
        print("\n".join(names))


def _alter(admin: Admin, given: Given) -> None:
    from ottla.client.admin.topics import NewPartitions

    partitions, assignment = given.integer("partitions"), _assignment(given.get("replica-assignment"))
    names = _existing(admin, given)
    if not names:
        return
    wanted = {}
    described = admin.describe_topics(names) if assignment else {}
    for name in names:
        new = assignment[len(described[name].partitions) :] if assignment else None
        wanted[name] = NewPartitions(partitions, new)
    admin.create_partitions(wanted, retry_on_quota=False).raise_first()


def _delete(admin: Admin, given: Given) -> None:
    if names := _existing(admin, given):
        admin.delete_topics(names, retry_on_quota=False).raise_first()


def _describe(admin: Admin, given: Given) -> None:
    topics = _described(admin, given)
    if not topics:
        if "json" in given:
            print_json([])
        return
    wanted = Wanted(
        topics=True,
        partitions="topics-with-overrides" not in given,
        under_replicated="under-replicated-partitions" in given,
        unavailable="unavailable-partitions" in given,
        under_min_isr="under-min-isr-partitions" in given,
        at_min_isr="at-min-isr-partitions" in given,
    )
    overrides = _overrides(admin, [topic.name for topic in topics])
    moves = _moves(admin, topics)
    live = [node.id for node in admin.describe_cluster().nodes]
    if "json" in given:
        found = (json_of(one, overrides[one.name], moves.get(one.name, {}), live, wanted) for one in topics)
        print_json([topic for topic in found if topic])
        return
    for topic in topics:
        for line in lines_of(topic, overrides[topic.name], moves.get(topic.name, {}), live, wanted):
            print(line)


def _described(admin: Admin, given: Given) -> list[TopicDescription]:
    from ottla.client.errors import UnknownTopicId

    topic_id = _topic_id(given.get("topic-id"))
    if topic_id is None:
        limit = given.get_integer("partition-size-limit-per-response") or _PARTITIONS_PER_RESPONSE
        names = _existing(admin, given)
        found = admin.describe_topics(names, partitions_per_page=limit).raise_first().values() if names else ()
        return sorted(found, key=lambda topic: topic.name)
    try:
        return [admin.describe_topics_by_id([topic_id])[topic_id]]
    except UnknownTopicId:
        if "if-exists" in given:
            return []
        raise Terse(f"TopicId '{topic_id}' does not exist as expected") from None


def _topic_id(text: str | None) -> str | None:
    """The id of zeros means none, as for Kafka's tool."""
    if text is None:
        return None
    try:
        topic_id = parse_uuid(text)
    except ValueError:
        raise Terse(f"Input string `{text}` is not the id of a topic: 22 characters of base64") from None
    return None if topic_id == ZERO_UUID else text


def _names(admin: Admin, given: Given) -> list[str]:
    listed = admin.list_topics(include_internal="exclude-internal" not in given)
    return chosen((topic.name for topic in listed), given.get("topic"))


def _existing(admin: Admin, given: Given) -> list[str]:
    """The topics that were named; raises if there are none and there should be."""
    existing = [topic.name for topic in admin.list_topics(include_internal="exclude-internal" not in given)]
    names = chosen(existing, given.get("topic"))
    if not names and (wanted := given.get("topic")) and "if-exists" not in given:
        raise Terse(f"Topic '{wanted}' does not exist as expected{did_you_mean(wanted, existing)}")
    return names


def _overrides(admin: Admin, names: Iterable[str]) -> dict[str, Overrides]:
    from ottla.client.admin.configs import ConfigResource

    found = {}
    for resource, entries in admin.describe_configs([ConfigResource.topic(name) for name in names]).items():
        values = {name: entry.value for name, entry in entries.items()}
        own = {name: entry.value for name, entry in entries.items() if not entry.is_default}
        found[resource.name] = Overrides(own, int(values.get("min.insync.replicas") or 1))
    return found


def _moves(admin: Admin, topics: Iterable[TopicDescription]) -> Mapping[str, Mapping[int, Reassigned]]:
    """By topic and partition. A broker that does not tell is taken to have none under way."""
    from ottla.base.ids import TopicPartition
    from ottla.client.errors import ClusterAuthorizationFailed, UnsupportedVersion

    partitions = [TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions]
    found: dict[str, dict[int, Reassigned]] = {}
    try:
        moving = admin.list_partition_reassignments(partitions)
    except (UnsupportedVersion, ClusterAuthorizationFailed):
        return found
    for partition, move in moving.items():
        of_topic = found.setdefault(partition.topic, {})
        of_topic[partition.partition] = Reassigned(move.replicas, move.adding_replicas, move.removing_replicas)
    return found


def _assignment(text: str | None) -> list[list[int]]:
    """Brokers of each partition, from `1:2,2:3`."""
    lists: list[list[int]] = []
    for number, part in enumerate(text.split(",") if text else ()):
        try:
            brokers = [int(word) for word in part.split(":")]
        except ValueError:
            raise Terse(f'For input string: "{part}"') from None
        if twice := sorted({broker for broker in brokers if brokers.count(broker) > 1}):
            raise Terse(f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}")
        if lists and len(brokers) != len(lists[0]):
            raise Terse(f"Partition {number} has different replication factor: {brokers}")
        lists.append(brokers)
    return lists


def _config(texts: Iterable[str]) -> dict[str, str]:
    config = {}
    for text in texts:
        name, equals, value = (word.strip() for word in text.partition("="))
        if not equals or not value or "=" in value:
            raise Terse(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        config[name] = value
    return config


_ACTIONS = {"create": _create, "list": _list, "alter": _alter, "describe": _describe, "delete": _delete}
