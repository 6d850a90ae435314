"""`kafka-configs`: prints and changes settings of topics, brokers, groups and clients, quotas and credentials."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.cli.configs import quotas, resources, scram
from ottla.cli.configs.config_options import PROGRAM
from ottla.cli.configs.entities import DEFAULT, Entity, check
from ottla.cli.configs.texts import parse_settings
from ottla.cli.failures import Terse
from ottla.cli.java_names import java_text
from ottla.cli.json_output import print_json
from ottla.cli.options.checks import run_program
from ottla.cli.options.reading import Given
from ottla.cli.sessions import open_admin
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, lambda given: run(given, arguments))


def run(given: Given, arguments: list[str]) -> int:
    action, entities = check(given)
    servers, controllers = given.get("bootstrap-server"), given.get("bootstrap-controller")
    with open_admin(servers, controllers=controllers, config_file=given.get("command-config")) as admin:
        try:
            if action == "describe":
                (_print_json if "json" in given else _describe)(admin, entities, everything="all" in given)
            else:
                _alter(admin, entities, _additions(given), [name.strip() for name in given.all("delete-config")])
            return 0
        except KafkaError as problem:
            print(f"Error while executing config command with args '{' '.join(arguments)}'", file=sys.stderr)
            print(f"java.util.concurrent.ExecutionException: {java_text(problem)}", file=sys.stderr)
            return 1


def _describe(admin: Admin, entities: list[Entity], *, everything: bool) -> None:
    if resources.is_resource(entities[0]):
        resources.describe(admin, entities[0], everything=everything)
        return
    quotas.describe(admin, entities)
    if [entity.type for entity in entities] == ["users"]:
        scram.describe(admin, entities[0])


def _print_json(admin: Admin, entities: list[Entity], *, everything: bool) -> None:
    if resources.is_resource(entities[0]):
        print_json(resources.documents(admin, entities[0], everything=everything))
        return
    found = quotas.documents(admin, entities)
    if [entity.type for entity in entities] == ["users"]:
        found += scram.documents(admin, entities[0])
    print_json(found)


def _alter(admin: Admin, entities: list[Entity], additions: Mapping[str, str], deletions: list[str]) -> None:
    first = entities[0]
    if resources.is_resource(first):
        resources.alter(admin, first, additions, deletions)
    else:
        _alter_client(admin, entities, additions, deletions)
    if first.name == DEFAULT:
        print(f"Completed updating default config for {first.type} in the cluster.")
    else:
        print(f"Completed updating config for {first.singular} {first.name}.")


def _alter_client(admin: Admin, entities: list[Entity], additions: Mapping[str, str], deletions: list[str]) -> None:
    """Quotas, or of users also credentials; both are not changed at once, since half of it could fail."""
    names = {*additions, *deletions}
    credentials = names & scram.MECHANISMS.keys()
    is_of_user = [entity.type for entity in entities] == ["users"]
    if not (is_of_user and credentials):
        quotas.alter(admin, entities, additions, deletions)
        return
    if names - credentials:
        raise Terse(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server."
        )
    if entities[0].name == DEFAULT:
        raise Terse(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials "
            "using --bootstrap-server."
        )
    scram.alter(admin, entities[0].name or "", additions, deletions)


def _additions(given: Given) -> dict[str, str]:
    if "add-config-file" in given:
        from ottla.config.properties import read_properties

        with open(given.text("add-config-file"), "rb") as file:
            return read_properties(file.read())
    text = given.get("add-config")
    return parse_settings(text) if text else {}
