"""Credentials of users for SCRAM, as kafka-configs prints and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.cli.configs.entities import DEFAULT, Entity
from ottla.cli.failures import Terse

if TYPE_CHECKING:
    from ottla.client.admin.access.scram import ScramDeletion, ScramUpsertion
    from ottla.client.blocking.admin import Admin

MECHANISMS: Final = {"SCRAM-SHA-256": "SCRAM_SHA_256", "SCRAM-SHA-512": "SCRAM_SHA_512"}
_FEWEST_ITERATIONS: Final = 4096
_USE_DEFAULT: Final = -1


def describe(admin: Admin, entity: Entity) -> None:
    for user, credentials in _found(admin, entity):
        shown = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in credentials)
        print(f"SCRAM credential configs for user-principal '{user}' are {shown}")


def documents(admin: Admin, entity: Entity) -> list[dict[str, object]]:
    """The same for `--json`."""
    return [
        {"user": user, "credentials": [{"mechanism": mechanism, "iterations": count} for mechanism, count in found]}
        for user, found in _found(admin, entity)
    ]


def _found(admin: Admin, entity: Entity) -> list[tuple[str, list[tuple[str, int]]]]:
    """Users with their mechanisms and iterations. A user without credentials is left out."""
    if entity.name == DEFAULT:
        return []
    described = admin.describe_user_scram_credentials(None if entity.name is None else [entity.name])
    described.errors  # noqa: B018 - users who are not there have none
    return [
        (user, [(one.mechanism.name.replace("_", "-"), one.iterations) for one in credentials])
        for user, credentials in sorted(described.succeeded.items())
    ]


def alter(admin: Admin, user: str, additions: Mapping[str, str], deletions: Iterable[str]) -> None:
    from ottla.client.admin.access.scram import ScramDeletion, ScramMechanism

    changes: list[ScramUpsertion | ScramDeletion] = []
    changes += [_upsertion(user, name, text) for name, text in additions.items()]
    changes += [ScramDeletion(user, ScramMechanism[MECHANISMS[name]]) for name in deletions]
    admin.alter_user_scram_credentials(changes).raise_first()


def _upsertion(user: str, mechanism: str, text: str) -> ScramUpsertion:
    from ottla.client.admin.access.scram import ScramMechanism, ScramUpsertion
    from ottla.config.values import Password

    iterations, password = parse_credential(mechanism, text)
    return ScramUpsertion(user, ScramMechanism[MECHANISMS[mechanism]], Password(password), iterations)


def parse_credential(mechanism: str, text: str) -> tuple[int, str]:
    """`iterations=8192,password=secret`, of which the first half may be left out."""
    iterations = _USE_DEFAULT
    rest = text
    if text.startswith("iterations="):
        number, _, rest = text.removeprefix("iterations=").partition(",")
        if not number.lstrip("-").isdecimal():
            raise Terse(f"Invalid credential property {MECHANISMS[mechanism]}={text}")
        iterations = int(number)
    if not rest.startswith("password="):
        raise Terse(f"Invalid credential property {MECHANISMS[mechanism]}={text}")
    if iterations == _USE_DEFAULT:
        iterations = _FEWEST_ITERATIONS
    if iterations < _FEWEST_ITERATIONS:
        raise Terse(f"Iterations {iterations} is less than the minimum {_FEWEST_ITERATIONS} required for {mechanism}")
    return iterations, rest.removeprefix("password=")
