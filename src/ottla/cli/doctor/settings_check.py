"""The settings of a node, by themselves: what stops it, what it does not know, and what one node cannot keep."""

from collections.abc import Iterator, Mapping

from ottla.base.errors import OttlaError
from ottla.cli.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding
from ottla.config.parse import ConfigError
from ottla.node.config import NodeConfig, read_config

AREA = "settings"
_COPIES = {
    "offsets.topic.replication.factor": "consumer groups",
    "transaction.state.log.replication.factor": "transactions",
    "share.coordinator.state.topic.replication.factor": "share groups",
}
"""Internal topics: without enough brokers for their replicas they are not made, and clients wait."""


def check_settings(properties: Mapping[str, str]) -> tuple[NodeConfig | None, list[Finding]]:
    """The configuration, if a node can be made from it, and what there is to say of it."""
    try:
        config = read_config(properties)
    except ConfigError as error:
        advice = "Correct it; docs/settings.md lists every setting with its bounds."
        return None, [Finding(AREA, PROBLEM, str(problem), advice) for problem in error.problems]
    except (OttlaError, ValueError) as error:
        return None, [Finding(AREA, PROBLEM, str(error), "Correct it, and run this again.")]
    findings = [*_warnings(config), *_copies(config), *_durability(config)]
    return config, findings or [Finding(AREA, OK, f"{len(properties)} settings, all known and in their bounds")]


def _warnings(config: NodeConfig) -> Iterator[Finding]:
    for warning in config.warnings:
        if warning.is_unknown:
            yield Finding(AREA, WARNING, str(warning), "Correct the name, or remove the line.")
        else:
            yield Finding(AREA, NOTE, str(warning))


def _copies(config: NodeConfig) -> Iterator[Finding]:
    """One broker has room for one replica. The settings of a node among others do not say how many there are."""
    for key, what in _COPIES.items():
        if _is_alone(config) and config.values.integer(key) > 1:
            yield Finding(
                AREA,
                WARNING,
                f"{key}={config.values.integer(key)}: one broker cannot hold as many replicas, so {what} will not work",
                f"Set {key}=1 while the cluster has one broker, or start the others.",
            )


def _is_alone(config: NodeConfig) -> bool:
    """Broker and the only controller in one. More brokers may still join it, so this is no proof."""
    addresses = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
    controllers = max(len(config.values.list(key)) for key in addresses)
    return config.is_broker and config.is_controller and controllers <= 1


def _durability(config: NodeConfig) -> Iterator[Finding]:
    for path in config.log_dirs:
        if path == "/tmp" or path.startswith(("/tmp/", "/var/tmp/", "/dev/shm/")):
            yield Finding(
                AREA,
                WARNING,
                f"data is kept in {path}, which systems clear at a restart or when files are old",
                "Set log.dirs to a directory that stays; this one is for trying things out.",
            )
