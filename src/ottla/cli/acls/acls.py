"""`kafka-acls`: lists, adds and removes access rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.cli.acls.acl_options import PROGRAM, check
from ottla.cli.acls.acl_rules import Entry, Resource, Rules, principal_of, resources_of, rules_of, rules_to_add
from ottla.cli.acls.acl_texts import adding_text, current_text, entry_text, exists_text, resource_text
from ottla.cli.failures import FAILURES, error_text
from ottla.cli.java_names import java_text
from ottla.cli.json_output import print_json
from ottla.cli.options.checks import UsageError, run_program
from ottla.cli.options.reading import Given, MissingOption
from ottla.cli.sessions import open_admin
from ottla.client.admin.access.acls import AclBinding, AclFilter
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run, help_with_options=True)


def run(given: Given) -> int:
    action = _ACTIONS[check(given)]
    servers, controllers = given.get("bootstrap-server"), given.get("bootstrap-controller")
    try:
        with open_admin(servers, controllers=controllers, config_file=given.get("command-config")) as admin:
            action(admin, given)
        return 0
    except (UsageError, MissingOption, BrokenPipeError):
        raise
    except FAILURES as problem:
        text = java_text(problem) if isinstance(problem, KafkaError) else error_text(problem)
        print(f"Error while executing ACL command: {text}")
        return 1


def _add(admin: Admin, given: Given) -> None:
    """Tells rules that are there already; the rest is added."""
    for resource, entries in rules_to_add(given).items():
        present = _found(admin, [resource]).get(resource, [])
        for entry in entries:
            if entry in present:
                print(exists_text(resource, entry))
        if new := [entry for entry in entries if entry not in present]:
            print(adding_text(resource, new))
            admin.create_acls([_binding(resource, entry) for entry in new]).raise_first()


def _remove(admin: Admin, given: Given) -> None:
    for resource, entries in rules_of(given).items():
        if not entries:
            question = (
                f"Are you sure you want to delete all ACLs for resource filter `{resource_text(resource)}`? (y/n)"
            )
        else:
            listed = "\n".join(f"\t{entry_text(entry)}" for entry in entries)
            question = (
                f"Are you sure you want to remove ACLs: \n {listed} \n"
                f" from resource filter `{resource_text(resource)}`? (y/n)"
            )
        if "force" not in given and not _confirms(question):
            continue
        admin.delete_acls(_filters(resource, entries)).raise_first()


def _confirms(question: str) -> bool:
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _list(admin: Admin, given: Given) -> None:
    found = _found(admin, resources_of(given))
    principals = given.all("principal")
    if "json" in given:
        wanted = {principal_of(principal) for principal in principals}
        rules = [_binding(resource, entry) for resource, entries in found.items() for entry in entries]
        print_json([rule for rule in rules if not wanted or rule.principal in wanted])
        return
    if not principals:
        _print(found)
    for principal in principals:
        checked = principal_of(principal)
        print(f"ACLs for principal `{checked}`")
        of_principal = {
            resource: [entry for entry in entries if entry.principal == checked] for resource, entries in found.items()
        }
        _print({resource: entries for resource, entries in of_principal.items() if entries})


def _print(rules: Rules) -> None:
    for resource, entries in rules.items():
        print(current_text(resource, entries))


def _found(admin: Admin, resources: Iterable[Resource]) -> Rules:
    """The rules of these resources, or all."""
    filters = [AclFilter(one.type, one.name, pattern_type=one.pattern) for one in resources]
    found: Rules = {}
    for wanted in filters or [AclFilter()]:
        for rule in admin.describe_acls(wanted):
            entries = found.setdefault(Resource(rule.resource_type, rule.resource_name, rule.pattern_type), [])
            entry = Entry(rule.principal, rule.host, rule.operation, rule.permission)
            if entry not in entries:
                entries.append(entry)
    return found


def _binding(resource: Resource, entry: Entry) -> AclBinding:
    return AclBinding(
        resource.type, resource.name, entry.principal, entry.operation, entry.permission, resource.pattern, entry.host
    )


def _filters(resource: Resource, entries: Iterable[Entry]) -> list[AclFilter]:
    """Of exactly these entries, or of all that the resource has."""
    filters = [
        AclFilter(resource.type, resource.name, principal, operation, permission, resource.pattern, host)
        for principal, host, operation, permission in entries
    ]
    return filters or [AclFilter(resource.type, resource.name, pattern_type=resource.pattern)]


_ACTIONS = {"add": _add, "remove": _remove, "list": _list}
