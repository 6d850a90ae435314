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
    REGISTRY = "registry"


OWN: Final = ("ottla.", "super.users", "allow.everyone.if.no.acl.found")
"""What the names of settings begin with that Apache Kafka's tables do not have: ours, and those of its authorizer."""

Table = MappingProxyType[str, Setting]

_TABLES: Final = MappingProxyType(
    {
        Scope.BROKER: ("broker",),
        Scope.TOPIC: ("topic",),
        Scope.PRODUCER: ("producer", "client"),
        Scope.CONSUMER: ("consumer", "client"),
        Scope.ADMIN: ("admin", "client"),
        Scope.REGISTRY: ("registry",),
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
    modules = [import_module(f"ottla.config.tables.{table}") for table in _TABLES[scope]]
    return [section for module in modules for section in module.SECTIONS]
