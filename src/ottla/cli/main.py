"""The `ottla` command. A sub-command's module is imported when it is asked for, so that every command starts fast."""

import sys
from typing import Final

from ottla import __version__
from ottla.cli.kafka import TOOLS, Tool, run_module

COMMANDS: Final = {
    "start": Tool("ottla.cli.start", "start a node: a broker and controller in this process"),
    "demo": Tool(
        "ottla.cli.demo", "a live stream through a Spark pipeline that is killed half-way; `demo node`: a node alone"
    ),
    "storage": Tool("ottla.cli.storage", "format the directories of a node, or tell what they are"),
    "certificates": Tool("ottla.cli.certificates", "make certificates for trying TLS out, and say how to use them"),
    "dump-log": Tool("ottla.cli.dump_log", "print what is in log segments, indexes, checkpoints and snapshots"),
    "verify": Tool(
        "ottla.cli.verify.verify", "check every batch of a data directory or a running cluster, and its indexes"
    ),
    "doctor": Tool("ottla.cli.doctor.doctor", "look at what a node would start with, or at a cluster: what to do"),
    "topic": Tool("ottla.cli.short.topic", "create, list, describe and delete topics, in few words"),
    "group": Tool("ottla.cli.short.group", "list and describe groups, move their offsets, in few words"),
    "config": Tool("ottla.cli.short.config", "print and change settings of topics and brokers, in few words"),
    "tail": Tool("ottla.cli.records.tail", "print the records of topics as they come"),
    "produce": Tool("ottla.cli.records.produce", "send lines or JSON records to a topic"),
    "consume": Tool("ottla.cli.records.consume", "write the records of a topic to a file, or as JSON lines"),
    "copy": Tool("ottla.cli.records.copy_command", "copy a topic, to another cluster too"),
    "backup": Tool(
        "ottla.cli.backup.backup_command", "save topics, groups, rules and quotas of a cluster in a directory"
    ),
    "restore": Tool("ottla.cli.backup.restore_command", "restore what a back-up has, to the same cluster or another"),
    "balance": Tool("ottla.cli.balance.balance_command", "spread replicas and leaders evenly over brokers and racks"),
    "node": Tool("ottla.cli.balance.node_command", "empty a broker, and take it out of the cluster"),
    "registry": Tool("ottla.cli.registry.command", "start a schema registry, and use one"),
    "connect": Tool("ottla.cli.connect.command", "start a worker of connectors, and use one"),
    "quorum": Tool(
        "ottla.cli.cluster.quorum", "look at a stopped controller's metadata; recover when a majority is lost"
    ),
    "pipelines": Tool("ottla.cli.pipelines", "show what streaming queries of Spark do, and how far they are behind"),
    "health": Tool("ottla.cli.health.health_command", "say whether a cluster is well, in one screen and one exit code"),
    "dashboards": Tool(
        "ottla.cli.dashboards.dashboards_command", "write dashboards for Grafana and rules for Prometheus"
    ),
    "top": Tool("ottla.cli.top.top", "show topics and groups of a cluster, live"),
    "metadata-shell": Tool("ottla.cli.metadata_shell.shell", "look around in the metadata of a cluster"),
    "sim": Tool("ottla.cli.sim.sim", "run clusters in a simulation, under faults, and check what they promise"),
    "server-stop": Tool("ottla.cli.server_stop", "ask the nodes of this machine to stop"),
    "completion": Tool("ottla.cli.completion", "print what makes bash, zsh or fish complete commands"),
    "version": Tool("ottla.cli.main", "print the version"),
    **TOOLS,
    "cluster": Tool("ottla.cli.local_cluster.command", "start a cluster of nodes on this machine, and look after it"),
}

BAD_USAGE: Final = 2


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    match words:
        case []:
            print(usage(), file=sys.stderr)
            return BAD_USAGE
        case ["-h" | "--help" | "help", *_]:
            print(usage())
            return 0
        case ["-V" | "--version" | "version", *_]:
            print(f"ottla {__version__}")
            return 0
        case ["complete", *words]:
            from ottla.cli.completion import complete

            return complete(words)
        case [name, *rest] if name in COMMANDS:
            return run_module(COMMANDS[name].module, rest)
        case [name, *_]:
            print(unknown(name), file=sys.stderr)
            return BAD_USAGE
    raise AssertionError("a command line is a list of words")


def usage() -> str:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items())
    return f"usage: ottla COMMAND ...\n\n{listing}\n\n`ottla COMMAND --help` says more about one."


def unknown(name: str) -> str:
    from difflib import get_close_matches  # only those who mistype pay for it

    nearest = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean `ottla {nearest[0]}`?" if nearest else "`ottla --help` lists the commands."
    return f"ottla: there is no command {name!r}; {hint}"


if __name__ == "__main__":
    sys.exit(main())
