"""Whose settings there are, and the tables that hold them. A table is imported when somebody asks for its scope."""

from enum import Enum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from ottla.config.setting import Setting


class Scope(Enum):
    """Whose settings they are."""

    BROKER = "broker"
    TOPIC = "topic"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


OWN: Final = ("ottla.", "super.users", "allow.everyone.if.no.acl.found")
"""What the names of settings begin with that Apache Kafka's tables do not have: ours, and those of its authorizer."""

Table = MappingProxyType[str, Setting]

SECTIONS: Final = MappingProxyType(
    {
        Scope.BROKER: (
            "broker_node",
            "broker_network",
            "broker_quorum",
            "broker_log",
            "broker_cleaner",
            "broker_replication",
            "broker_topics",
            "broker_groups",
            "broker_share_groups",
            "broker_streams_groups",
            "broker_transactions",
            "broker_quotas",
            "broker_remote_log",
            "broker_metrics",
            "broker_ssl",
            "broker_sasl",
            "broker_access",
            "broker_ottla",
        ),
        Scope.TOPIC: ("topic",),
        Scope.PRODUCER: ("producer", "client", "client_ssl", "client_sasl"),
        Scope.CONSUMER: ("consumer", "client", "client_ssl", "client_sasl"),
        Scope.ADMIN: ("admin", "client", "client_ssl", "client_sasl"),
    }
)
"""The modules that make up a scope, in the order in which the reference page shows them."""


@cache
def settings(scope: Scope) -> Table:
    """All settings of a scope by name. The first call imports its tables."""
    rows: dict[str, Setting] = {}
    for _, section_rows in sections(scope):
        for row in section_rows:
            assert row.name not in rows, f"two rows for {row.name}"
            rows[row.name] = row
    return MappingProxyType(rows)


def sections(scope: Scope) -> list[tuple[str, tuple[Setting, ...]]]:
    """The rows of a scope under the title of their area."""
    modules = [import_module(f"ottla.config.tables.{section}") for section in SECTIONS[scope]]
    return [(str(module.__doc__).partition(".")[0], module.SETTINGS) for module in modules]
