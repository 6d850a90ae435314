"""`ottla topic create|list|describe|alter|delete`."""

import re
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ottla.cli.records.connecting import at_least
from ottla.cli.records.record_filter import pattern
from ottla.cli.short.subcommands import ShortCommand, key_value, print_json, print_table, require_names
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.client.admin.topics import TopicDescription
    from ottla.client.blocking.admin import Admin


def main(arguments: list[str] | None = None) -> int:
    return short_command().run(arguments)


def short_command() -> ShortCommand:
    topic = ShortCommand("topic", "Topics, in few words. `kafka-topics` does the rest.")
    create = topic.add("create", _create, "create topics")
    create.add_argument("topics", nargs="+", metavar="TOPIC")
    create.add_argument("-p", "--partitions", type=at_least(1), metavar="N", help="(default: the cluster's)")
    create.add_argument("-r", "--replicas", type=at_least(1), metavar="N", help="(default: the cluster's)")
    create.add_argument(
        "-c", "--config", type=key_value, action="append", default=[], metavar="KEY=VALUE", help="a setting of it"
    )
    create.add_argument("--if-not-exists", action="store_true", help="no error if the topic exists")
    listing = topic.add("list", _list, "list topics", prints=True)
    listing.add_argument("pattern", nargs="?", type=pattern, metavar="PATTERN", help="only names that it matches")
    listing.add_argument("--internal", action="store_true", help="the cluster's own, too")
    describe = topic.add("describe", _describe, "print the partitions and settings of topics", prints=True)
    describe.add_argument("topics", nargs="+", metavar="TOPIC")
    alter = topic.add("alter", _alter, "give topics more partitions")
    alter.add_argument("topics", nargs="+", metavar="TOPIC")
    alter.add_argument("-p", "--partitions", type=at_least(1), required=True, metavar="N", help="how many in all")
    delete = topic.add("delete", _delete, "delete topics with all their records")
    delete.add_argument("topics", nargs="+", metavar="TOPIC")
    delete.add_argument("--if-exists", action="store_true", help="no error if the topic does not exist")
    return topic


def _create(admin: "Admin", options: Namespace) -> None:
    from ottla.client.admin.topics import NewTopic
    from ottla.client.errors import TopicAlreadyExists

    config = dict(options.config)
    wanted = [NewTopic(name, options.partitions, options.replicas, config=config) for name in options.topics]
    created = admin.create_topics(wanted)
    for name in options.topics:
        try:
            made = created[name]
        except TopicAlreadyExists:
            if not options.if_not_exists:
                raise
            print(f"{name} is there already")
            continue
        partitions = "" if made.partitions is None else f" with {counted(made.partitions, 'partition')}"
        replicas = "" if made.replication_factor is None else f", {counted(made.replication_factor, 'replica')}"
        print(f"created {name}{partitions}{replicas}")


def _list(admin: "Admin", options: Namespace) -> None:
    wanted: re.Pattern[str] | None = options.pattern
    names = [
        topic.name
        for topic in admin.list_topics(include_internal=options.internal)
        if wanted is None or wanted.search(topic.name)
    ]
    described = admin.describe_topics(names).succeeded if names else {}
    topics = [described[name] for name in sorted(described)]
    if options.json:
        print_json([_as_json(topic) for topic in topics])
        return
    rows = [(topic.name, len(topic.partitions), _replicas(topic), _health(topic)) for topic in topics]
    print_table(("TOPIC", "PARTITIONS", "REPLICAS", "STATE"), rows)


def _describe(admin: "Admin", options: Namespace) -> None:
    from ottla.base.ids import TopicPartition
    from ottla.client.admin.configs import ConfigResource

    require_names("topic", options.topics, (topic.name for topic in admin.list_topics(include_internal=True)))
    described = admin.describe_topics(options.topics).raise_first()
    resources = [ConfigResource.topic(name) for name in options.topics]
    configs = admin.describe_configs(resources).succeeded
    partitions = [TopicPartition(name, one.partition) for name, topic in described.items() for one in topic.partitions]
    starts = admin.list_offsets(dict.fromkeys(partitions, -2)).succeeded
    ends = admin.list_offsets(dict.fromkeys(partitions, -1)).succeeded
    if options.json:
        found = []
        for name, topic in described.items():
            shown = _as_json(topic)
            for partition in shown["partitions"]:
                key = TopicPartition(name, partition["partition"])
                partition["start_offset"] = starts[key].offset if key in starts else None
                partition["end_offset"] = ends[key].offset if key in ends else None
            entries = configs.get(ConfigResource.topic(name), {})
            shown["config"] = {entry.name: entry.value for entry in entries.values() if not entry.is_default}
            found.append(shown)
        print_json(found)
        return
    for number, (name, topic) in enumerate(described.items()):
        if number:
            print()
        print(f"{name}  {topic.topic_id or ''}".rstrip())
        for entry in configs.get(ConfigResource.topic(name), {}).values():
            if not entry.is_default:
                print(f"  {entry.name}={entry.value}")
        rows = []
        for one in topic.partitions:
            key = TopicPartition(name, one.partition)
            start, end = (offsets[key].offset if key in offsets else None for offsets in (starts, ends))
            rows.append((one.partition, one.leader, one.replicas, one.in_sync_replicas, start, end))
        print_table(("PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END"), rows)


def _alter(admin: "Admin", options: Namespace) -> None:
    require_names("topic", options.topics, (topic.name for topic in admin.list_topics()))
    admin.create_partitions(dict.fromkeys(options.topics, options.partitions)).raise_first()
    for name in options.topics:
        print(f"{name} has {counted(options.partitions, 'partition')} now")


def _delete(admin: "Admin", options: Namespace) -> None:
    existing = {topic.name for topic in admin.list_topics()}
    names = [name for name in options.topics if name in existing] if options.if_exists else options.topics
    require_names("topic", names, existing)
    if names:
        admin.delete_topics(names).raise_first()
    for name in names:
        print(f"deleted {name}")


def _as_json(topic: "TopicDescription") -> dict[str, Any]:
    return {
        "topic": topic.name,
        "id": topic.topic_id,
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": one.partition,
                "leader": one.leader,
                "replicas": list(one.replicas),
                "isr": list(one.in_sync_replicas),
            }
            for one in topic.partitions
        ],
    }


def _replicas(topic: "TopicDescription") -> str:
    counts = sorted({len(one.replicas) for one in topic.partitions})
    return "-" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def _health(topic: "TopicDescription") -> str:
    without_leader = sum(one.leader is None for one in topic.partitions)
    behind = sum(len(one.in_sync_replicas) < len(one.replicas) for one in topic.partitions)
    if without_leader:
        return f"{without_leader} without a leader"
    return f"{behind} under-replicated" if behind else "ok"
