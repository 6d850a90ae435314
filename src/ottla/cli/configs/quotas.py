"""Quotas of users, client ids and addresses, as kafka-configs prints and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.cli.configs.entities import DEFAULT, Entity
from ottla.cli.configs.texts import java_double
from ottla.cli.failures import Terse

if TYPE_CHECKING:
    from ottla.client.admin.access.quotas import AnyName, QuotaEntity
    from ottla.client.blocking.admin import Admin

_OF_CLIENTS: Final = ("consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage")
_QUOTAS: Final = {"users": _OF_CLIENTS, "clients": _OF_CLIENTS, "ips": ("connection_creation_rate",)}
_PARTS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_TITLES: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


def describe(admin: Admin, entities: Sequence[Entity]) -> None:
    from ottla.client.membership.assignors.java_order import in_sized_hash_order

    for found, values in _found(admin, entities).items():
        # As Java's map has them: scripts compare lines.
        shown = ", ".join(f"{name}={java_double(values[name])}" for name in in_sized_hash_order(values))
        print(f"Quota configs for {entity_text(dict(found.parts))} are {shown}")


def documents(admin: Admin, entities: Sequence[Entity]) -> list[dict[str, object]]:
    """The same for `--json`; null is the default of its kind."""
    found = _found(admin, entities).items()
    return [{"entity": dict(sorted(entity.parts)), "quotas": values} for entity, values in found]


def _found(admin: Admin, entities: Sequence[Entity]) -> dict[QuotaEntity, dict[str, float]]:
    from ottla.client.admin.access.quotas import ANY_NAME

    wanted: dict[str, str | AnyName | None] = {}
    for entity in entities:
        wanted[_PARTS[entity.type]] = ANY_NAME if entity.name is None else entity.name or None
    return admin.describe_client_quotas(wanted, strict=True)


def entity_text(parts: Mapping[str, str | None]) -> str:
    """`user-principal 'alice', the default client-id`."""
    return ", ".join(
        f"the default {title}" if parts[kind] is None else f"{title} '{parts[kind]}'"
        for kind, title in _TITLES.items()
        if kind in parts
    )


def alter(admin: Admin, entities: Sequence[Entity], additions: Mapping[str, str], deletions: Iterable[str]) -> None:
    from ottla.client.admin.access.quotas import QuotaEntity

    deletions = list(deletions)
    kind = entities[0].type
    known = _QUOTAS[kind]
    of_what = "quota and SCRAM credential" if [entity.type for entity in entities] == ["users"] else "quota"
    for verb, names, collection in (("added", additions, "Set"), ("deleted", deletions, "ArrayBuffer")):
        if unknown := [name for name in names if name not in known]:
            raise Terse(
                f"Only {of_what} configs can be {verb} for '{kind}' using --bootstrap-server. "
                f"Unexpected config names: {collection}({', '.join(unknown)})"
            )
    changes: dict[str, float | None] = {name: _number(name, value) for name, value in additions.items()}
    changes.update(dict.fromkeys(deletions))
    parts = tuple(sorted((_PARTS[entity.type], None if entity.name == DEFAULT else entity.name) for entity in entities))
    admin.alter_client_quotas({QuotaEntity(parts): changes}).raise_first()


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Terse(f"Cannot parse quota configuration value for {name}: {text}") from None
