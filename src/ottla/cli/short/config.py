"""`ottla config get|set|unset KIND NAME`: settings of a topic, a broker, all brokers or a group."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from ottla.cli.short.subcommands import (
    NotThere,
    ShortCommand,
    key_value,
    print_json,
    print_table,
    require_names,
)
from ottla.cli.text_tables import did_you_mean

if TYPE_CHECKING:
    from ottla.client.admin.configs import ConfigResource
    from ottla.client.blocking.admin import Admin

KINDS: Final = ("topic", "broker", "brokers", "group", "client-metrics")


def main(arguments: list[str] | None = None) -> int:
    return short_command().run(arguments)


def short_command() -> ShortCommand:
    config = ShortCommand("config", "Settings, in few words. `kafka-configs` has users, quotas and loggers besides.")
    get = config.add("get", _get, "print settings", prints=True)
    _add_resource(get)
    get.add_argument("keys", nargs="*", metavar="KEY", help="only these")
    get.add_argument("-a", "--all", action="store_true", help="also settings that have their default")
    change = config.add("set", _set, "change settings")
    _add_resource(change)
    change.add_argument("settings", nargs="+", type=key_value, metavar="KEY=VALUE")
    unset = config.add("unset", _unset, "take settings back to their defaults")
    _add_resource(unset)
    unset.add_argument("keys", nargs="+", metavar="KEY")
    return config


def _add_resource(command: ArgumentParser) -> None:
    command.add_argument(
        "kind", choices=KINDS, help="what the settings are of; brokers stands for all brokers, and takes no NAME"
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="a topic, a broker's id, a group")


def _resource(admin: "Admin", options: Namespace) -> "ConfigResource":
    """`ottla config set brokers KEY=VALUE` has no name: what stands in its place belongs to the rest."""
    from ottla.client.admin.configs import ConfigResource

    kind, name = options.kind, options.name
    if kind == "brokers":
        if name is not None:
            _give_back(options, name)
        return ConfigResource.broker("")
    if name is None:
        raise NotThere(f"which {kind}? Its name is missing")
    if kind == "topic":
        require_names("topic", [name], (topic.name for topic in admin.list_topics(include_internal=True)))
        return ConfigResource.topic(name)
    if kind == "broker":
        require_names("broker", [name], (str(node.id) for node in admin.describe_cluster().nodes))
        return ConfigResource.broker(name)
    return ConfigResource.group(name) if kind == "group" else ConfigResource.client_metrics(name)


def _give_back(options: Namespace, word: str) -> None:
    if options.command == "set":
        options.settings.insert(0, key_value(word))
    else:
        options.keys.insert(0, word)


def _get(admin: "Admin", options: Namespace) -> None:
    resource = _resource(admin, options)
    entries = admin.describe_configs([resource])[resource]
    if options.keys and resource.name:
        for key in options.keys:
            if key not in entries:
                raise NotThere(f"there is no setting {key}{did_you_mean(key, entries)}")
    chosen = [
        entry
        for name, entry in sorted(entries.items())
        if name in options.keys or (not options.keys and (options.all or not entry.is_default))
    ]
    rows = [(entry.name, "[hidden]" if entry.is_sensitive else entry.value, _source(entry.source)) for entry in chosen]
    if options.json:
        print_json({name: {"value": value, "source": source} for name, value, source in rows})
    else:
        print_table(("SETTING", "VALUE", "FROM"), rows)


def _source(source: object) -> str:
    return str(getattr(source, "name", source)).lower().replace("_", " ").removesuffix(" config")


def _set(admin: "Admin", options: Namespace) -> None:
    resource = _resource(admin, options)
    admin.incremental_alter_configs({resource: dict(options.settings)}).raise_first()
    for key, value in options.settings:
        print(f"{key}={value}")


def _unset(admin: "Admin", options: Namespace) -> None:
    resource = _resource(admin, options)
    entries = admin.describe_configs([resource])[resource]
    for key in options.keys:
        if key not in entries and resource.name:
            raise NotThere(f"there is no setting {key}{did_you_mean(key, entries)}")
    admin.incremental_alter_configs({resource: dict.fromkeys(options.keys)}).raise_first()
    for key in options.keys:
        print(f"{key} is as it is by default")
