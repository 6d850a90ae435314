"""What requests say: paths, parameters and bodies, checked. Whatever is wrong is a `Refused`."""

import re
from collections.abc import Mapping
from json import loads
from typing import Any, Final
from urllib.parse import unquote_plus, unquote_to_bytes

from ottla.registry.decisions import MODES, NewSchema, Tags
from ottla.registry.entities import (
    InvalidRules,
    Malformed,
    Metadata,
    RuleSet,
    check_rules,
    read_metadata,
    read_rules,
)
from ottla.registry.json_form import json_text
from ottla.registry.records import AVRO, is_number, read_references
from ottla.registry.refusals import (
    bad_request,
    invalid_compatibility,
    invalid_mode,
    invalid_rules,
    invalid_version,
    missing_body,
    not_found,
)
from ottla.registry.state import LATEST
from ottla.schemas.levels import Level
from ottla.schemas.schema import Entity, EntityKind

_SURROGATES: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LARGEST_INT: Final = (1 << 31) - 1
_NUMBER: Final = re.compile("[-+]?[0-9]{1,10}")

CONFIG_FIELDS: Final[Mapping[str, str]] = {
    "alias": "alias",
    "aliasForDeks": "aliasForDeks",
    "normalize": "normalize",
    "validateFields": "validateFields",
    "validateNewSchemas": "validateNewSchemas",
    "validateRules": "validateRules",
    "compatibility": "compatibilityLevel",
    "compatibilityPolicy": "compatibilityPolicy",
    "compatibilityGroup": "compatibilityGroup",
    "defaultMetadata": "defaultMetadata",
    "overrideMetadata": "overrideMetadata",
    "defaultRuleSet": "defaultRuleSet",
    "overrideRuleSet": "overrideRuleSet",
}
"""What a request calls a member of a config, and what its record calls it."""
_FLAGS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_POLICIES: Final = ("STRICT", "LENIENT")


class Parameters:
    """The query of a request. A value that cannot be read is answered with 404, as Confluent's does."""

    def __init__(self, query: str) -> None:
        self._values: dict[str, list[str]] = {}
        for pair in query.split("&") if query else ():
            name, _, value = pair.partition("=")
            self._values.setdefault(unquote_plus(name), []).append(unquote_plus(value))

    def text(self, name: str, default: str = "") -> str:
        return self._values[name][0] if name in self._values else default

    def optional(self, name: str) -> str | None:
        return self._values[name][0] if name in self._values else None

    def texts(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def integer(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        if not _NUMBER.fullmatch(text):
            raise not_found()
        return int(text)


def segments_of(path: str) -> list[str]:
    """The parts of a path, decoded: a name may have a slash in it, as %2F. Raises `Refused` (400)."""
    try:
        return [
            unquote_to_bytes(part).decode() if "%" in part else part.encode("latin-1").decode()
            for part in path.strip("/").split("/")
        ]
    except UnicodeDecodeError:
        raise bad_request("The path is not UTF-8") from None


def version_number(text: str) -> int:
    """Raises `Refused` (42202)."""
    text = text.strip()
    if text.lower() == "latest":
        return LATEST
    if not _NUMBER.fullmatch(text):
        raise invalid_version(text)
    number = int(text)
    if not 0 < number <= _LARGEST_INT and number != LATEST:
        raise invalid_version(text)
    return number


def id_number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise not_found()
    return int(text)


def body_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a request has. Raises `Refused` (400, 422)."""
    if not body.strip():
        raise missing_body()
    try:
        found = loads(body)
        if _SURROGATES.search(body):
            json_text(found).encode()
    except (ValueError, RecursionError) as problem:
        raise bad_request(f"The request body is not JSON: {problem}") from None
    if found is None:
        raise missing_body()
    if not isinstance(found, dict):
        raise bad_request("The request body must be a JSON object")
    return found


def _field(found: Mapping[str, Any], name: str, kind: type, what: str) -> Any:
    value = found.get(name)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise bad_request(f"{name} must be {what}")
    if kind is int and value is not None and not is_number(value):
        raise bad_request(f"{name} must be a number of 32 bits")
    return value


def _metadata(found: Mapping[str, Any], name: str) -> Metadata | None:
    try:
        return read_metadata(found.get(name))
    except Malformed as problem:
        raise bad_request(str(problem)) from None


def _rules(found: Mapping[str, Any], name: str) -> RuleSet | None:
    try:
        rules = read_rules(found.get(name))
    except Malformed as problem:
        raise bad_request(str(problem)) from None
    try:
        check_rules(rules)
    except InvalidRules as problem:
        raise invalid_rules(str(problem)) from None
    return rules


def new_schema(found: Mapping[str, Any]) -> NewSchema:
    """The schema of a request to register, look up or compare. Raises `Refused`."""
    try:
        references = read_references(found["references"]) if found.get("references") else ()
    except Malformed as problem:
        raise bad_request(str(problem)) from None
    id = _field(found, "id", int, "a number")
    return NewSchema(
        _field(found, "schemaType", str, "text") or AVRO,
        _field(found, "schema", str, "text") or "",
        references,
        _metadata(found, "metadata"),
        _rules(found, "ruleSet"),
        _field(found, "version", int, "a number") or 0,
        -1 if id is None else id,
    )


def tags_field(found: Mapping[str, Any], name: str) -> Tags:
    """`[{"schemaEntity": {"entityPath": …, "entityType": "sr_field"}, "tags": […]}]`."""
    value = _field(found, name, list, "a list") or []
    return tuple(map(_tag, value))


def _tag(value: Any) -> tuple[Entity, tuple[str, ...]]:
    entity = value.get("schemaEntity") if isinstance(value, dict) else None
    tags = value.get("tags") if isinstance(value, dict) else None
    if not isinstance(entity, dict) or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise bad_request("a tag must have a schemaEntity and tags")
    path, kind = entity.get("entityPath"), entity.get("entityType")
    if not isinstance(path, str) or kind not in ("sr_record", "sr_field"):
        raise bad_request("a schemaEntity must have an entityPath and an entityType of sr_record or sr_field")
    named: EntityKind = "sr_record" if kind == "sr_record" else "sr_field"
    return Entity(path, named), tuple(tags)


def config_changes(found: Mapping[str, Any]) -> dict[str, Any]:
    """By the names of the record. Raises `Refused`."""
    changes: dict[str, Any] = {}
    for name, member in CONFIG_FIELDS.items():
        if name not in found:
            continue
        value = found[name]
        if value is None:
            changes[member] = None
        elif name == "compatibility":
            changes[member] = _level(value)
        elif name == "compatibilityPolicy":
            changes[member] = _policy(value)
        elif name in _FLAGS:
            changes[member] = _flag(name, value)
        elif name.endswith("Metadata"):
            changes[member] = _metadata(found, name)
        elif name.endswith("RuleSet"):
            changes[member] = _rules(found, name)
        else:
            changes[member] = _field(found, name, str, "text") or None
    return changes


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise bad_request(f"{name} must be true or false")
    return value


def _level(value: object) -> str:
    level = value.upper() if isinstance(value, str) else ""
    if level not in Level.__members__:
        raise invalid_compatibility()
    return level


def _policy(value: object) -> str:
    policy = value.upper() if isinstance(value, str) else ""
    if policy not in _POLICIES:
        raise bad_request(f"compatibilityPolicy must be one of {', '.join(_POLICIES)}")
    return policy


def mode_field(found: Mapping[str, Any]) -> str | None:
    """None takes the mode back. Raises `Refused` (42204)."""
    value = found.get("mode")
    if value is None:
        return None
    mode = value.upper() if isinstance(value, str) else ""
    if mode not in MODES:
        raise invalid_mode()
    return mode


def optional_metadata(found: Mapping[str, Any]) -> Metadata | None:
    return _metadata(found, "metadata")


def rule_set(found: Mapping[str, Any], name: str) -> RuleSet | None:
    return _rules(found, name)


def number_field(found: Mapping[str, Any], name: str) -> int | None:
    value: int | None = _field(found, name, int, "a number")
    return value


def names_field(found: Mapping[str, Any], name: str) -> list[str] | None:
    value = _field(found, name, list, "a list")
    if value is not None and not all(isinstance(one, str) for one in value):
        raise bad_request(f"{name} must be a list of texts")
    names: list[str] | None = value
    return names


def flag_field(found: Mapping[str, Any], name: str) -> bool:
    return bool(_field(found, name, bool, "true or false"))
