"""The records of the topic `_schemas`, byte for byte as Confluent's registry writes them.

The topic is compacted, and brokers compare keys as bytes: so the form of a key is a contract between all registries
that share the topic. We write one form. What we read may have others: Karapace's old order of members, `"subject":null`
for what is global, keys with members of later versions. They are the same key to us (`read_key`), and what we write of
a key is written in each form that was seen (`state.State.forms`), or else a record that was deleted would come back
when its tombstone is gone.

| key | value |
| --- | --- |
| SCHEMA, subject, version | a version of a subject; no value: it is gone for good |
| CONFIG, subject or none | compatibility and the like; no value: what is set above it counts |
| MODE, subject or none | READWRITE, READONLY, …; no value: what is set above it counts |
| DELETE_SUBJECT, subject | all versions of the subject up to one are soft-deleted |
| CLEAR_SUBJECT, subject or none | all soft-deleted versions of the subject or context are gone for good |
| CONTEXT | a context has come into being; no value: it is gone |
| NOOP | nothing: its offset is what counts. Ours may carry `maxIds`, which Confluent's and Karapace's pass over |

Never write a key of another type: Confluent's reader dies of it.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from json import loads
from sys import intern
from typing import Any, Final, NamedTuple, TypeGuard

from ottla.base.errors import OttlaError
from ottla.registry.entities import Malformed, Metadata, RuleSet, read_metadata, read_rules
from ottla.registry.json_form import json_bytes
from ottla.schemas.levels import Level
from ottla.schemas.registry_port import Reference

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"
CONTEXT: Final = "CONTEXT"
NOOP: Final = "NOOP"

TENANT: Final = "default"
AVRO: Final = "AVRO"
_OF_SUBJECTS: Final = (CONFIG, MODE, DELETE_SUBJECT, CLEAR_SUBJECT)
_MAGICS: Final = (0, 1)
_LARGEST_NUMBER: Final = (1 << 31) - 1
_NUMBER: Final = re.compile("-?[0-9]{1,10}")

_SCHEMA_MEMBERS: Final = frozenset(
    ("subject", "version", "id", "md5", "schemaType", "references", "metadata", "ruleSet", "schema", "deleted")
)
_PLACE_MEMBERS: Final = frozenset(("offset", "ts"))
"""Where a value was found when it was read. Confluent's registry writes them where it writes a value back."""

CONFIG_MEMBERS: Final = (
    "alias",
    "aliasForDeks",
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
_CONFIG_KINDS: Final[Mapping[str, type]] = {
    "alias": str,
    "compatibilityLevel": str,
    "compatibilityPolicy": str,
    "compatibilityGroup": str,
    "normalize": bool,
    "validateFields": bool,
    "validateNewSchemas": bool,
}


class Key(NamedTuple):
    """What a record is about. `subject` is a context for CONTEXT, and None for what is global."""

    type: str
    subject: str | None = None
    version: int = 0


class Record(NamedTuple):
    """One to be written. `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class UnreadableRecord(OttlaError):
    """A key or value that is of no use. It is counted, and left where it is."""


NOOP_KEY: Final = b'{"keytype":"NOOP","magic":0}'


def key_bytes(key: Key) -> bytes:
    """The one form in which we write a key."""
    if key.type == SCHEMA:
        return json_bytes({"keytype": SCHEMA, "subject": key.subject, "version": key.version, "magic": 1})
    if key.type == CONTEXT:
        return json_bytes({"keytype": CONTEXT, "tenant": TENANT, "context": key.subject, "magic": 0})
    if key.subject is None:
        return json_bytes({"keytype": key.type, "magic": 0})
    return json_bytes({"keytype": key.type, "subject": key.subject, "magic": 0})


def _object(data: bytes, what: str) -> dict[str, Any]:
    try:
        found = loads(data)
    except (ValueError, RecursionError) as problem:
        raise UnreadableRecord(f"{what} is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise UnreadableRecord(f"{what} is not a JSON object")
    return found


def is_number(value: object) -> TypeGuard[int]:
    """Whether it may be an id or a version: these are `int` in Java, and ids have four bytes before each record."""
    return type(value) is int and -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER


def read_key(data: bytes | None) -> Key:
    """Raises `UnreadableRecord`, also for types that are not known."""
    if data is None:
        raise UnreadableRecord("the record has no key")
    found = _object(data, "the key")
    kind, subject = found.get("keytype"), found.get("subject")
    if kind == NOOP:
        return Key(NOOP)
    if subject is not None and not isinstance(subject, str):
        raise UnreadableRecord("the key's subject is not a string")
    if kind == SCHEMA:
        version = found.get("version")
        if subject is None or not is_number(version) or found.get("magic", 1) not in _MAGICS:
            raise UnreadableRecord("the key names no version of a subject")
        return Key(SCHEMA, subject, version)
    if kind in _OF_SUBJECTS:
        return Key(kind, subject)
    if kind == CONTEXT:
        context = found.get("context")
        if not isinstance(context, str):
            raise UnreadableRecord("the key names no context")
        return Key(CONTEXT, context)
    raise UnreadableRecord(f"the key is of the type {kind!r}")


class SchemaValue(NamedTuple):
    """The value of a SCHEMA record. `unknown` are members that later versions of registries may have added."""

    subject: str
    version: int
    id: int
    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    deleted: bool = False
    digest: bytes | None = None
    """What is written as `md5`, in place of the digest of what the record says."""
    unknown: Mapping[str, Any] | None = None


def read_schema(key: Key, data: bytes) -> SchemaValue:
    """Raises `UnreadableRecord`."""
    found = _object(data, "the value")
    subject, version = found.get("subject", key.subject), found.get("version")
    id, text = found.get("id"), found.get("schema")
    if not isinstance(subject, str) or not is_number(version) or not is_number(id) or not isinstance(text, str):
        raise UnreadableRecord("the value has no subject, version, id and schema")
    kind = found.get("schemaType") or AVRO
    if not isinstance(kind, str):
        raise UnreadableRecord("the value's schemaType is no text")
    kind = intern(kind)
    references = found.get("references")
    metadata, rules, digest = found.get("metadata"), found.get("ruleSet"), found.get("md5")
    try:
        return SchemaValue(
            subject,
            version,
            id,
            kind,
            text,
            () if not references else read_references(references),
            None if metadata is None else read_metadata(metadata),
            None if rules is None else read_rules(rules),
            bool(found.get("deleted")),
            None if digest is None else _digest(digest),
            _unknown(found),
        )
    except Malformed as problem:
        raise UnreadableRecord(str(problem)) from None


def _digest(text: object) -> bytes | None:
    try:
        found = b64decode(text) if isinstance(text, str) else b""
    except (NotBase64, ValueError):
        found = b""
    return found if len(found) == 16 else None


def _unknown(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if found.keys() <= _SCHEMA_MEMBERS:
        return None
    rest = {name: value for name, value in found.items() if name not in _SCHEMA_MEMBERS | _PLACE_MEMBERS}
    return rest or None


def read_references(value: object) -> tuple[Reference, ...]:
    """Raises `Malformed`."""
    if not isinstance(value, list):
        raise Malformed("references must be a list")
    found = []
    for one in value:
        if not isinstance(one, dict):
            raise Malformed("a reference must be an object")
        name, subject, version = one.get("name"), one.get("subject"), one.get("version")
        if isinstance(version, str) and _NUMBER.fullmatch(version):
            version = int(version)
        if not isinstance(name, str) or not isinstance(subject, str) or not is_number(version):
            raise Malformed("a reference must have a name, a subject and a version")
        found.append(Reference(name, subject, version))
    return tuple(found)


def reference_objects(references: tuple[Reference, ...]) -> list[dict[str, Any]]:
    return [{"name": one.name, "subject": one.subject, "version": one.version} for one in references]


def schema_record(value: SchemaValue) -> Record:
    members: dict[str, Any] = {"subject": value.subject, "version": value.version, "id": value.id}
    if value.digest is not None:
        members["md5"] = b64encode(value.digest).decode()
    members["schemaType"] = value.kind
    if value.references:
        members["references"] = reference_objects(value.references)
    if value.metadata is not None:
        members["metadata"] = value.metadata
    if value.rules is not None:
        members["ruleSet"] = value.rules
    members["schema"] = value.text
    members["deleted"] = value.deleted
    members.update(value.unknown or {})
    return Record(key_bytes(Key(SCHEMA, value.subject, value.version)), json_bytes(members))


def read_config(data: bytes) -> dict[str, Any]:
    """All members but the subject, those that are not known included. Raises `UnreadableRecord`."""
    found = _object(data, "the value")
    try:
        for name in ("defaultMetadata", "overrideMetadata"):
            if found.get(name) is not None:
                found[name] = read_metadata(found[name])
        for name in ("defaultRuleSet", "overrideRuleSet"):
            if found.get(name) is not None:
                found[name] = read_rules(found[name])
    except Malformed as problem:
        raise UnreadableRecord(str(problem)) from None
    found.pop("subject", None)
    for name, value in found.items():
        kind = _CONFIG_KINDS.get(name)
        if kind is not None and value is not None and not isinstance(value, kind):
            raise UnreadableRecord(f"the value's {name} is no {kind.__name__}")
    if (found.get("compatibilityLevel") or "NONE") not in Level.__members__:
        raise UnreadableRecord("the value's compatibilityLevel is none that is known")
    return {name: value for name, value in found.items() if name not in _PLACE_MEMBERS and value is not None}


def config_record(subject: str | None, config: Mapping[str, Any]) -> Record:
    members: dict[str, Any] = {} if subject is None else {"subject": subject}
    for name in CONFIG_MEMBERS:
        if config.get(name) is not None and config[name] != "":
            members[name] = config[name]
    members.update({name: value for name, value in config.items() if name not in CONFIG_MEMBERS})
    return Record(key_bytes(Key(CONFIG, subject)), json_bytes(members))


def read_mode(data: bytes) -> str:
    mode = _object(data, "the value").get("mode")
    if not isinstance(mode, str):
        raise UnreadableRecord("the value has no mode")
    return mode


def mode_record(subject: str | None, mode: str) -> Record:
    members = {"mode": mode} if subject is None else {"subject": subject, "mode": mode}
    return Record(key_bytes(Key(MODE, subject)), json_bytes(members))


def read_delete_subject(data: bytes) -> tuple[str, int]:
    """The subject, and the version up to which it is deleted."""
    found = _object(data, "the value")
    subject, version = found.get("subject"), found.get("version")
    if not isinstance(subject, str) or type(version) is not int:
        raise UnreadableRecord("the value names no subject and version")
    return subject, version


def delete_subject_record(subject: str, version: int) -> Record:
    return Record(key_bytes(Key(DELETE_SUBJECT, subject)), json_bytes({"subject": subject, "version": version}))


def clear_subject_record(subject: str | None) -> Record:
    value = {} if subject is None else {"subject": subject}
    return Record(key_bytes(Key(CLEAR_SUBJECT, subject)), json_bytes(value))


def context_record(context: str) -> Record:
    return Record(key_bytes(Key(CONTEXT, context)), json_bytes({"tenant": TENANT, "context": context}))


def noop_record(max_ids: Mapping[str, int] | None = None) -> Record:
    """`max_ids`: of contexts whose highest id is one of a schema that is gone, so that it is not given out again."""
    return Record(NOOP_KEY, json_bytes({"maxIds": dict(max_ids)}) if max_ids else None)


def read_max_ids(data: bytes | None) -> dict[str, int]:
    """Whatever else a NOOP carries is nothing to us."""
    try:
        found = _object(data, "the value").get("maxIds") if data else None
    except UnreadableRecord:
        return {}
    if not isinstance(found, dict):
        return {}
    return {context: id for context, id in found.items() if is_number(id)}
