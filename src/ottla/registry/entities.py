"""Metadata and rule sets of schemas: read from JSON, brought into one form, merged, and counted into a schema's guid.

Their form is that of Confluent's registry: members in its order, sets and maps sorted, what is empty left out. So two
that mean the same are the same dict, the same JSON, and give the same guid.
"""

from collections.abc import Iterable, Mapping
from hashlib import md5
from typing import Any, Final, TypeAlias

from ottla.base.errors import OttlaError
from ottla.registry.json_form import utf_16_order
from ottla.schemas.registry_port import Reference

Metadata: TypeAlias = Mapping[str, Any]
"""`tags`, `properties`, `sensitive`."""
RuleSet: TypeAlias = Mapping[str, Any]
"""`migrationRules`, `domainRules`, `encodingRules`, `enableAt`."""

VERSION_PROPERTY: Final = "confluent:version"
_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")
_KINDS: Final = ("TRANSFORM", "CONDITION")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN_MODES: Final = ("WRITE", "READ", "WRITEREAD")
_WITH_TWO_ACTIONS: Final = ("UPDOWN", "WRITEREAD")
_ENVIRONMENTS: Final = ("CLIENT", "GATEWAY", "PROXY")
_LONGEST_NAME: Final = 256


class Malformed(OttlaError):
    """JSON that is not of the form that it must be: a request that nobody could mean."""


class InvalidRules(OttlaError):
    """A rule set that breaks a rule for rule sets (42210)."""


def _sorted(texts: Iterable[str]) -> list[str]:
    found = sorted(set(texts))
    return found if all(map(str.isascii, found)) else sorted(found, key=utf_16_order)


def _text(value: object, what: str) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        raise Malformed(f"{what} must be text")
    return value


def _texts(value: object, what: str) -> list[str]:
    if not isinstance(value, list):
        raise Malformed(f"{what} must be a list")
    return _sorted(_text(one, what) for one in value)


def _map(value: object, what: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Malformed(f"{what} must be an object")
    return {name: _text(value[name], what) for name in _sorted(value)}


def _without_empty(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != "" and value != []}


def read_metadata(value: object) -> Metadata | None:
    """Raises `Malformed`."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Malformed("metadata must be an object")
    found: dict[str, Any] = {}
    if tags := value.get("tags"):
        if not isinstance(tags, dict):
            raise Malformed("tags must be an object")
        found["tags"] = {path: _texts(tags[path] or [], "tags") for path in _sorted(tags)}
    if value.get("properties"):
        found["properties"] = _map(value["properties"], "properties")
    if value.get("sensitive"):
        found["sensitive"] = _texts(value["sensitive"], "sensitive")
    return found


def read_rules(value: object) -> RuleSet | None:
    """Raises `Malformed`."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Malformed("a rule set must be an object")
    found: dict[str, Any] = {}
    for name in _RULE_LISTS:
        if rules := value.get(name):
            if not isinstance(rules, list):
                raise Malformed(f"{name} must be a list")
            found[name] = [_read_rule(rule) for rule in rules]
    if (environment := value.get("enableAt")) is not None:
        found["enableAt"] = _one_of(environment, _ENVIRONMENTS, "enableAt")
    return found


def _one_of(value: object, choices: tuple[str, ...], what: str) -> str:
    if value not in choices:
        raise Malformed(f"{what} must be one of {', '.join(choices)}")
    return str(value)


def _read_rule(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed("a rule must be an object")
    modes = _MIGRATION_MODES + _DOMAIN_MODES
    rule = {
        "name": _optional(value, "name"),
        "doc": _optional(value, "doc"),
        "kind": _one_of(value.get("kind") or "TRANSFORM", _KINDS, "kind"),
        "mode": _one_of(value.get("mode") or "WRITEREAD", modes, "mode"),
        "type": _optional(value, "type"),
        "tags": _texts(value.get("tags") or [], "tags"),
        "params": _map(value.get("params") or {}, "params") or None,
        "expr": _optional(value, "expr"),
        "onSuccess": _optional(value, "onSuccess"),
        "onFailure": _optional(value, "onFailure"),
        "disabled": bool(value.get("disabled") or False),
    }
    return _without_empty(rule)


def _optional(value: Mapping[str, Any], name: str) -> str | None:
    return None if value.get(name) is None else _text(value[name], name)


def check_rules(rules: RuleSet | None) -> None:
    """Raises `InvalidRules`."""
    names: set[str] = set()
    for list_name, modes, what in (
        ("migrationRules", _MIGRATION_MODES, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN"),
        ("domainRules", _DOMAIN_MODES, "Domain rules can only be WRITE, READ, WRITEREAD"),
        ("encodingRules", _DOMAIN_MODES, "Encoding rules can only be WRITE, READ, WRITEREAD"),
    ):
        for rule in (rules or {}).get(list_name, ()):
            name = rule.get("name")
            if name in names:
                raise InvalidRules(f"Found rule with duplicate name '{name}'")
            _check_rule(rule)
            names.add(name)
            if rule["mode"] not in modes:
                raise InvalidRules(what)


def _check_rule(rule: Mapping[str, Any]) -> None:
    name = rule.get("name")
    if not name:
        raise InvalidRules("Missing rule name")
    if len(name) > _LONGEST_NAME:
        raise InvalidRules("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidRules(f"Illegal initial character in rule name: {name}")
    if not all(letter.isalnum() or letter in "_-" for letter in name):
        raise InvalidRules(f"Illegal character in rule name: {name}")
    if not rule.get("type"):
        raise InvalidRules("Missing rule type")
    for action in ("onSuccess", "onFailure"):
        if rule["mode"] not in _WITH_TWO_ACTIONS and "," in rule.get(action, ""):
            raise InvalidRules("Multiple actions only valid with WRITEREAD and UPDOWN")


def rule_types(rules: RuleSet | None) -> set[str]:
    return {rule.get("type", "") for name in _RULE_LISTS for rule in (rules or {}).get(name, ())}


def without_rules(rules: RuleSet | None, names: Iterable[str]) -> RuleSet | None:
    """The rule set without the rules of these names."""
    if rules is None:
        return None
    gone = set(names)
    lists = {name: [rule for rule in rules.get(name, ()) if rule.get("name") not in gone] for name in _RULE_LISTS}
    return _without_empty({**lists, "enableAt": rules.get("enableAt")})


# --- merging ---


def merge_metadata(one: Metadata | None, over: Metadata | None) -> Metadata | None:
    """What the second says counts before what the first says."""
    if one is None or over is None:
        return over if one is None else one
    merged: dict[str, Any] = {}
    for name in ("tags", "properties"):
        both = {**one.get(name, {}), **over.get(name, {})}
        if both:
            merged[name] = {key: both[key] for key in _sorted(both)}
    if sensitive := _sorted((*one.get("sensitive", ()), *over.get("sensitive", ()))):
        merged["sensitive"] = sensitive
    return merged


def merge_rules(one: RuleSet | None, over: RuleSet | None) -> RuleSet | None:
    if one is None or over is None:
        return over if one is None else one
    merged: dict[str, Any] = {}
    for name in _RULE_LISTS:
        new = over.get(name, [])
        names = {rule.get("name") for rule in new}
        merged[name] = [rule for rule in one.get(name, ()) if rule.get("name") not in names] + list(new)
    return _without_empty({**merged, "enableAt": over.get("enableAt", one.get("enableAt"))})


def with_version(metadata: Metadata | None, version: int) -> Metadata:
    """The same with `confluent:version`."""
    number = {"properties": {VERSION_PROPERTY: str(version)}}
    merged = merge_metadata(metadata, number)
    assert merged is not None
    return merged


def version_property(metadata: Metadata | None) -> str | None:
    found: str | None = (metadata or {}).get("properties", {}).get(VERSION_PROPERTY)
    return found


def without_version(metadata: Metadata | None) -> Metadata | None:
    """The same without `confluent:version`: what two schemas are compared by when nobody named a version."""
    if version_property(metadata) is None:
        return metadata
    assert metadata is not None
    properties = {name: value for name, value in metadata["properties"].items() if name != VERSION_PROPERTY}
    rest = {name: value for name, value in metadata.items() if name != "properties"}
    return read_metadata({**rest, "properties": properties})


# --- the guid ---


def schema_digest(
    text: str, references: Iterable[Reference], metadata: Metadata | None, rules: RuleSet | None
) -> bytes:
    """What a guid is made of, and what schemas are known by: the MD5 of all that a schema says, in 16 bytes."""
    digest = md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in references:
        digest.update(f"{reference.name}{reference.subject}".encode("utf-8", "surrogatepass"))
        digest.update((reference.version & 0xFFFFFFFF).to_bytes(4, "big"))
    if metadata is not None:
        pieces = ["\x01"]
        for path, tags in metadata.get("tags", {}).items():
            pieces += (path, *tags)
        for item in metadata.get("properties", {}).items():
            pieces += item
        pieces += metadata.get("sensitive", ())
        digest.update("".join(pieces).encode("utf-8", "surrogatepass"))
    if rules is not None:
        pieces = ["\x01"]
        for name in _RULE_LISTS:
            for rule in rules.get(name, ()):
                pieces += _rule_pieces(rule)
        pieces.append(rules.get("enableAt", ""))
        digest.update("".join(pieces).encode("utf-8", "surrogatepass"))
    return digest.digest()


def _rule_pieces(rule: Mapping[str, Any]) -> list[str]:
    pieces = [rule.get(name, "") for name in ("name", "doc", "kind", "mode", "type")]
    pieces += rule.get("tags", ())
    for item in rule.get("params", {}).items():
        pieces += item
    pieces += [rule.get(name, "") for name in ("expr", "onSuccess", "onFailure")]
    return [*pieces, "\x01"] if rule.get("disabled") else pieces


def guid_text(digest: bytes) -> str:
    """The digest as a UUID is written."""
    digits = digest.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def read_guid(text: str) -> bytes | None:
    """The digest that a guid stands for; None if it stands for none."""
    digits = text.replace("-", "")
    try:
        digest = bytes.fromhex(digits)
    except ValueError:
        return None
    return digest if len(digest) == 16 else None
