"""Access rules as kafka-acls prints them."""

from collections.abc import Iterable

from ottla.cli.acls.acl_rules import Entry, Resource


def resource_text(resource: Resource) -> str:
    kind, pattern = resource.type.name, resource.pattern.name
    return f"ResourcePattern(resourceType={kind}, name={resource.name}, patternType={pattern})"


def entry_text(entry: Entry) -> str:
    operation, permission = entry.operation.name, entry.permission.name
    return f"(principal={entry.principal}, host={entry.host}, operation={operation}, permissionType={permission})"


def adding_text(resource: Resource, entries: Iterable[Entry]) -> str:
    lines = "\n".join(f"\t{entry_text(entry)}" for entry in entries)
    return f"Adding ACLs for resource `{resource_text(resource)}`: \n {lines}\n"


def current_text(resource: Resource, entries: Iterable[Entry]) -> str:
    lines = "".join(f"\n\t{entry_text(entry)}" for entry in entries)
    return f"Current ACLs for resource `{resource_text(resource)}`:{lines}\n"


def exists_text(resource: Resource, entry: Entry) -> str:
    return f"Acl (pattern={resource_text(resource)}, entry={entry_text(entry)}) already exists."
