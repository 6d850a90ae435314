"""What is decided on a request that changes something: the records that make it true, and the reply.

Theory of operation. A command decides on a state and changes nothing: it gives records, whose replay changes the state,
or raises `Refused`. What takes time (parsing, comparing) is done before, by a worker, on what the state said then:

    basis = command.basis(state)                    # what the work rests on
    prepared = await command.prepare(state, texts)  # the work
    if command.basis(state) == basis:               # else: again
        decision = command.decide(state, prepared)

`decide` is quick and needs nothing but the state. The order of checks is Confluent's, since it decides which of several
errors a client sees.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ottla.client.promise import Promise, spawn
from ottla.registry.entities import (
    Metadata,
    RuleSet,
    merge_metadata,
    merge_rules,
    schema_digest,
    version_property,
    with_version,
    without_version,
)
from ottla.registry.records import (
    CONFIG,
    CONTEXT,
    MODE,
    SCHEMA,
    Key,
    Record,
    SchemaValue,
    clear_subject_record,
    config_record,
    context_record,
    delete_subject_record,
    mode_record,
    noop_record,
    schema_record,
)
from ottla.registry.refusals import (
    Refused,
    compatibility_not_configured,
    context_not_empty,
    incompatible,
    invalid_mode,
    invalid_schema,
    mode_not_configured,
    not_permitted,
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from ottla.registry.state import READWRITE, State, Version, Which
from ottla.registry.subjects import context_of, context_prefix, is_context, is_global_context, read_name
from ottla.registry.texts import SchemaText, Texts, Understood, compatibility_messages
from ottla.schemas.registry_port import Reference
from ottla.schemas.schema import Entity, ParsedSchema

PreparedT = TypeVar("PreparedT")

MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
IMPORT: Final = "IMPORT"
FORWARD: Final = "FORWARD"
_READ_ONLY: Final = ("READONLY", "READONLY_OVERRIDE")
_TAKES_IDS: Final = (IMPORT, FORWARD)
_RESERVED: Final = "confluent:reserved"
_LARGEST_ID: Final = (1 << 31) - 1
_COMPARED: Final = 3
_MOST_COMPARED: Final = 100

Tags = tuple[tuple[Entity, tuple[str, ...]], ...]


class Decision(NamedTuple):
    """`reply` is what is given out once the records are committed; without records, once all before them are."""

    records: tuple[Record, ...]
    reply: Any


class Command(Protocol[PreparedT]):
    """A request that changes something."""

    def basis(self, state: State) -> object: ...
    def prepare(self, state: State, texts: Texts) -> Promise[PreparedT]: ...
    def decide(self, state: State, prepared: PreparedT) -> Decision: ...


class _AtOnce:
    """A command that needs no work before it decides."""

    def basis(self, state: State) -> object:
        return None

    def prepare(self, state: State, texts: Texts) -> Promise[None]:
        return Promise.resolved(None)


def in_each_form(state: State, key: Key, record: Record) -> list[Record]:
    """A record in every form of its key that has one, so that none of them comes back."""
    return [Record(form, record.value) for form in state.forms_of(key)]


def tombstones(state: State, key: Key) -> list[Record]:
    return [Record(form, None) for form in state.forms_of(key)]


def _check_writable(state: State, subject: str | None) -> None:
    if state.mode_in_scope(subject) in _READ_ONLY:
        context = "" if subject is None else context_prefix(subject)
        raise not_permitted(f"Subject {_java(subject)} in context {context} is in read-only mode")


def _java(subject: str | None) -> str:
    """As Java puts it into a message."""
    return "null" if subject is None else subject


# --- registering ---


class NewSchema(NamedTuple):
    """A schema as a request gives it. `version` 0 and `id` -1: the registry chooses; version -1: the next, named."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0
    id: int = -1


class Candidate(NamedTuple):
    """A version that a new schema is compared with, and what it refers to."""

    version: Version
    texts: tuple[tuple[str, str], ...]

    @property
    def given(self) -> SchemaText:
        return SchemaText(self.version.kind, self.version.text, self.version.references, self.texts)


def candidates(state: State, versions: Iterable[Version]) -> list[Candidate]:
    """Versions whose references can be resolved."""
    found = []
    for version in versions:
        texts: Mapping[str, str] = {}
        if version.references:
            try:
                _, texts = state.resolve(version.subject, version.references)
            except LookupError:
                continue
        found.append(Candidate(version, tuple(texts.items())))
    return found


def schema_text(
    state: State,
    subject: str,
    schema: NewSchema,
    *,
    as_new: bool = False,
    normalize: bool = False,
    strict: bool | None = None,
    add_tags: Tags = (),
    remove_tags: Tags = (),
) -> SchemaText:
    """What is to be parsed of a new schema. Raises `Refused` (42201) if it refers to what is not there."""
    references, texts = schema.references, dict[str, str]()
    if references:
        try:
            references, texts = state.resolve(subject, references, deleted=not as_new)
        except LookupError as problem:
            details = f"Invalid schema of type {schema.kind}, details: {problem.args[0]}"
            raise invalid_schema(details) from None
        except RecursionError:
            raise invalid_schema(f"Invalid schema of type {schema.kind}, details: references are too deep") from None
    return SchemaText(
        schema.kind,
        schema.text,
        references,
        tuple(texts.items()),
        as_new,
        normalize,
        strict,
        add_tags,
        remove_tags,
    )


def is_same(
    new: ParsedSchema,
    references: tuple[Reference, ...],
    metadata: Metadata | None,
    rules: RuleSet | None,
    old: Version,
    old_parsed: ParsedSchema,
) -> bool:
    """Whether a new schema is an old version in other words: with everything written out that the old one refers to, or
    with or without `confluent:version`."""
    if new.kind != old_parsed.kind or rules != old.rules:
        return False
    if references != old.references and (references or not old.references):
        return False
    return _same_metadata(metadata, old) and new.is_equivalent(old_parsed)


def _same_metadata(metadata: Metadata | None, old: Version) -> bool:
    number, old_number = _number(version_property(metadata)), _number(version_property(old.metadata))
    if number is None and old_number is not None:
        return (metadata or {}) == (without_version(old.metadata) or {})
    if number is not None and old_number is None:
        return number == old.number and (without_version(metadata) or {}) == (old.metadata or {})
    return metadata == old.metadata


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def has_defaults(config: Mapping[str, Any]) -> bool:
    """Whether a config adds something to schemas that are registered."""
    names = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
    return any(config.get(name) is not None for name in names)


def with_defaults(
    config: Mapping[str, Any], schema: NewSchema, previous: Version | None, new_version: int | None
) -> NewSchema:
    """A schema with the metadata and rules that it gets from the version before it and from the config."""
    metadata = schema.metadata if schema.metadata is not None or previous is None else previous.metadata
    rules = schema.rules if schema.rules is not None or previous is None else previous.rules
    metadata = merge_metadata(merge_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = merge_rules(merge_rules(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    if new_version is not None and (schema.version != 0 or version_property(metadata) is not None):
        metadata = with_version(metadata, new_version)
    return schema._replace(metadata=metadata, rules=rules)


def validates_fields(config: Mapping[str, Any], default: bool) -> bool:
    found = config.get("validateFields")
    return default if found is None else bool(found)


def compatibility(
    texts: Texts,
    config: Mapping[str, Any],
    new: ParsedSchema,
    metadata: Metadata | None,
    previous: Iterable[Candidate],
    *,
    validate_fields: bool,
) -> list[str]:
    """Why a schema may not follow the versions, the newest first; empty if it may. On a worker. Raises `Refused`."""
    remaining = list(previous)
    messages: list[str] = []
    if validate_fields:
        before = remaining[0].version.metadata if remaining else None
        messages += _reserved_messages(new, metadata, before)
    group = config.get("compatibilityGroup")
    if group:
        value = _property(metadata, group)
        remaining = [one for one in remaining if _property(one.version.metadata, group) == value]
    level = config["compatibilityLevel"]
    parsed = ((one.version.number, texts.understand_now(one.given).parsed) for one in remaining)
    messages += compatibility_messages(new, parsed, level, config.get("compatibilityPolicy"))
    if messages:
        messages.append(f"{{validateFields: '{str(validate_fields).lower()}', compatibility: '{level}'}}")
    return messages


def _property(metadata: Metadata | None, name: str) -> str | None:
    found: str | None = (metadata or {}).get("properties", {}).get(name)
    return found


def _reserved(metadata: Metadata | None) -> list[str]:
    return [name for name in map(str.strip, (_property(metadata, _RESERVED) or "").split(",")) if name]


def _reserved_messages(new: ParsedSchema, metadata: Metadata | None, before: Metadata | None) -> list[str]:
    reserved = _reserved(metadata)
    messages = [
        f"The new schema has reserved field {name} removed from its metadata "
        "which is present in the old schema's metadata."
        for name in _reserved(before)
        if name not in reserved
    ]
    messages += [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in reserved
        if new.has_top_level_field(name)
    ]
    return messages


class _Registered(NamedTuple):
    """What came of the work before a registration is decided on."""

    schema: NewSchema
    """With all that it gets from the version before it and the config; its text is canonical."""
    understood: Understood | None
    digest: bytes
    same: Version | None
    """The version that it is already, if it is one in other words."""
    messages: list[str]
    """Why it may not follow the versions that there are."""


@dataclass(frozen=True, slots=True)
class Register:
    """The reply is the version and id that the schema has: `Registration`."""

    subject: str
    schema: NewSchema
    normalize: bool = False
    propagates_tags: bool = False
    add_tags: Tags = ()
    remove_tags: Tags = ()
    validates_fields: bool = False
    validates_new: bool = True

    def basis(self, state: State) -> object:
        return state.revision(self.subject), state.settings_revision

    def prepare(self, state: State, texts: Texts) -> Promise[_Registered]:
        return spawn(self._prepare(state, texts))

    async def _prepare(self, state: State, texts: Texts) -> _Registered:
        subject, schema = self.subject, self.schema
        self._check_mode(state)
        config = state.config_in_scope(subject)
        takes_ids = state.mode_in_scope(subject) in _TAKES_IDS
        live = list(reversed(state.versions(subject)))
        add_tags = self.add_tags
        if self.add_tags or self.remove_tags:
            # Without a number of its own it is the next one, so that the version is in its metadata.
            schema = schema._replace(version=schema.version or -1)
        if not takes_ids:
            schema = self._populated(state, config, schema, live[0] if live else None)
            if self.propagates_tags and live:
                add_tags = (*add_tags, *await self._tags_of(state, texts, live[0]))
        if not schema.text.strip():
            raise invalid_schema("Empty schema")
        validates_fields_now = validates_fields(config, self.validates_fields)
        validates_new = config.get("validateNewSchemas")
        as_new = schema.id < 0 and (self.validates_new if validates_new is None else bool(validates_new))
        given = schema_text(
            state,
            subject,
            schema,
            as_new=as_new,
            normalize=self.normalize,
            strict=None if takes_ids else validates_fields_now,
            add_tags=add_tags,
            remove_tags=self.remove_tags,
        )
        understood = await texts.understand(given)
        schema = schema._replace(text=understood.text, references=given.references)
        digest = schema_digest(schema.text, schema.references, schema.metadata, schema.rules)
        known = state.by_digest(subject, digest)
        if known is not None and schema.version == 0 and schema.id in (-1, known[0]):
            number = known[1].get(subject)
            if number is not None and state.version(subject, number) is not None:
                return _Registered(schema, understood, digest, state.version(subject, number), [])
        id = schema.id if known is None or schema.id >= 0 else known[0]
        to_compare = candidates(state, may_be_same(schema, live)) if schema.version == 0 else []
        previous = [] if takes_ids or config["compatibilityLevel"] == "NONE" else candidates(state, live)
        if not to_compare and not previous:
            return _Registered(schema, understood, digest, None, [])

        def compare() -> _Registered:
            same = find_same(texts, understood.parsed, schema, id, to_compare)
            messages: list[str] = []
            if same is None and not takes_ids:
                messages = compatibility(
                    texts,
                    config,
                    understood.parsed,
                    schema.metadata,
                    previous,
                    validate_fields=validates_fields_now,
                )
            return _Registered(schema, understood, digest, same, messages)

        return await texts.on_worker(compare)

    def _check_mode(self, state: State) -> None:
        subject, mode = self.subject, state.mode_in_scope(self.subject)
        _check_writable(state, subject)
        context = context_prefix(subject)
        if self.schema.id >= 0 and mode not in _TAKES_IDS:
            raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
        if self.schema.id < 0 and mode != READWRITE:
            raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")

    def _populated(
        self, state: State, config: Mapping[str, Any], schema: NewSchema, previous: Version | None
    ) -> NewSchema:
        if not schema.text.strip():
            if previous is None:
                raise invalid_schema("Empty schema")
            schema = schema._replace(kind=previous.kind, text=previous.text, references=previous.references)
        return with_defaults(config, schema, previous, next_version(state, self.subject))

    async def _tags_of(self, state: State, texts: Texts, version: Version) -> Tags:
        found = candidates(state, [version])
        if not found:
            return ()
        understood = await texts.understand(found[0].given)
        return tuple(understood.parsed.tagged_entities().items())

    def decide(self, state: State, prepared: _Registered) -> Decision:
        subject, schema = self.subject, prepared.schema
        self._check_mode(state)
        if prepared.same is not None:
            return Decision((), Registration(prepared.same.number, prepared.same.id, schema, prepared.digest))
        if prepared.messages:
            raise incompatible(subject, prepared.messages)
        number = next_version(state, subject)
        if schema.version > 0:
            if schema.version != number and state.mode_in_scope(subject) not in _TAKES_IDS:
                raise invalid_schema("Version is not one more than previous version")
            number = schema.version
        records: list[Record] = []
        context = context_of(subject)
        if not state.is_announced(context):
            records.append(context_record(context))
        id = self._id(state, schema, prepared.digest)
        for version in state.versions(subject, Which.DELETED):
            # The same schema was deleted: it is not to be there twice. What refers to it needs it, deleted or not.
            is_referred_to = bool(state.referrers(subject, version.number, deleted=True))
            if version.id == id and version.number < number and not is_referred_to:
                records += tombstones(state, Key(SCHEMA, subject, version.number))
        value = SchemaValue(
            subject, number, id, schema.kind, schema.text, schema.references, schema.metadata, schema.rules
        )
        records += in_each_form(state, Key(SCHEMA, subject, number), schema_record(value))
        return Decision(tuple(records), Registration(number, id, schema, prepared.digest))

    def _id(self, state: State, schema: NewSchema, digest: bytes) -> int:
        known = state.by_digest(self.subject, digest)
        if known is not None and schema.id in (-1, known[0]):
            return known[0]
        if schema.id < 0:
            id = state.max_id(context_of(self.subject)) + 1
            if id > _LARGEST_ID:
                raise not_permitted("Error while registering the schema: there are no ids left in this context")
            return id
        existing = state.by_id(schema.id, context_prefix(self.subject))
        if existing is not None and (
            existing.kind,
            existing.text,
            existing.references,
            existing.metadata,
            existing.rules,
        ) != (schema.kind, schema.text, schema.references, schema.metadata, schema.rules):
            context = context_prefix(self.subject)
            raise not_permitted(f"Overwrite new schema with id {schema.id} in context {context} is not permitted.")
        return schema.id


class Registration(NamedTuple):
    """A schema that is registered now, or was before."""

    version: int
    id: int
    schema: NewSchema
    digest: bytes


def may_be_same(schema: NewSchema, versions: Iterable[Version]) -> list[Version]:
    """Versions, the newest first, that a schema may be in other words, as far as can be seen without parsing.

    Texts are canonical, so two that differ say different things, unless one has written out what the other refers to.
    Some that were stored by older registries may be in another form: the newest ones are looked at all the same.
    """
    found: list[Version] = []
    for place, old in enumerate(versions):
        inlines = not schema.references and bool(old.references)
        if old.kind == schema.kind and (
            inlines or (schema.references == old.references and (place < _COMPARED or old.text == schema.text))
        ):
            found.append(old)
            if len(found) >= _MOST_COMPARED:
                break
    return found


def find_same(
    texts: Texts, new: ParsedSchema, schema: NewSchema, id: int, looked_at: Iterable[Candidate]
) -> Version | None:
    """The newest of these that says the same in other words. On a worker."""
    for candidate in looked_at:
        old = candidate.version
        if id >= 0 and id != old.id:
            continue
        try:
            old_parsed = texts.understand_now(candidate.given).parsed
        except Refused:
            continue  # What is stored may be no schema. It is not this one, then.
        if is_same(new, schema.references, schema.metadata, schema.rules, old, old_parsed):
            return old
    return None


def next_version(state: State, subject: str) -> int:
    """One more than any that is there, deleted ones included."""
    versions = state.versions(subject, Which.ALL)
    return versions[-1].number + 1 if versions else 1


# --- deleting ---


def _keep_max_ids(state: State, gone: Iterable[Version]) -> list[Record]:
    """If the last schema of a context's highest id goes, the id is written down before: it is never given out again,
    even if not all that follows is written."""
    kept = state.max_ids_to_keep()
    for version in gone:
        context = context_of(version.subject)
        if version.id == state.max_id(context):
            kept[context] = version.id
    return [noop_record(kept)] if kept else []


@dataclass(frozen=True, slots=True)
class DeleteVersion(_AtOnce):
    """The reply is the version's number."""

    subject: str
    number: int
    permanent: bool = False

    def decide(self, state: State, prepared: None) -> Decision:
        subject = self.subject
        version = state.version(subject, self.number, deleted=True)
        if version is None:
            if not state.has_subjects(subject, deleted=True):
                raise subject_not_found(subject)
            raise version_not_found(self.number)
        if version.deleted and not self.permanent:
            raise version_soft_deleted(subject, self.number)
        _check_writable(state, subject)
        if state.referrers(subject, version.number, deleted=self.permanent):
            raise reference_exists(subject, version.number)
        key = Key(SCHEMA, subject, version.number)
        if not self.permanent:
            deleted = version._replace(deleted=True)
            return Decision(tuple(in_each_form(state, key, schema_record(deleted.value))), version.number)
        if not version.deleted:
            raise version_not_soft_deleted(subject, version.number)
        records = _keep_max_ids(state, [version])
        if len(state.versions(subject, Which.ALL)) == 1:
            records += _settings_tombstones(state, subject)
        records += tombstones(state, key)
        return Decision(tuple(records), version.number)


def _settings_tombstones(state: State, subject: str) -> list[Record]:
    """A subject that is gone for good takes its mode and config with it."""
    records = []
    if state.own_mode(subject) is not None:
        records += tombstones(state, Key(MODE, subject))
    if state.own_config(subject) is not None:
        records += tombstones(state, Key(CONFIG, subject))
    return records


@dataclass(frozen=True, slots=True)
class DeleteSubject(_AtOnce):
    """The reply is the list of versions that are deleted."""

    subject: str
    permanent: bool = False

    def decide(self, state: State, prepared: None) -> Decision:
        subject = self.subject
        versions = state.versions(subject, Which.ALL)
        if not versions:
            raise subject_not_found(subject)
        if not self.permanent:
            versions = [version for version in versions if not version.deleted]
            if not versions:
                raise subject_soft_deleted(subject)
        _check_writable(state, subject)
        for version in versions:
            if self._is_referred_to(state, version):
                raise reference_exists(subject, version.number)
            if self.permanent and not version.deleted:
                raise subject_not_soft_deleted(subject)
        numbers = [version.number for version in versions]
        if not self.permanent:
            return Decision((delete_subject_record(subject, numbers[-1]),), numbers)
        # The versions last: as long as one is left, deleting the subject once more deletes the rest.
        records = _keep_max_ids(state, versions) + _settings_tombstones(state, subject)
        for number in reversed(numbers):
            records += tombstones(state, Key(SCHEMA, subject, number))
        return Decision(tuple(records), numbers)

    def _is_referred_to(self, state: State, version: Version) -> bool:
        """By another subject: versions of the subject itself go with it."""
        return any(
            user.subject != self.subject
            for one in state.referrers(self.subject, version.number, deleted=self.permanent)
            for user in state.users(one.context, one.id, deleted=self.permanent)
        )


@dataclass(frozen=True, slots=True)
class DeleteContext(_AtOnce):
    """`context` is a prefix of subjects, `:.ctx:`. There is no reply."""

    context: str

    def decide(self, state: State, prepared: None) -> Decision:
        if state.has_subjects(self.context, deleted=True):
            raise context_not_empty(self.context)
        return Decision(tuple(tombstones(state, Key(CONTEXT, read_name(self.context).context))), None)


# --- settings ---


@dataclass(frozen=True, slots=True)
class SetConfig(_AtOnce):
    """`changes` by the names of the record; None takes a member out. The reply is the whole config."""

    subject: str | None
    changes: Mapping[str, Any]

    def decide(self, state: State, prepared: None) -> Decision:
        _check_writable(state, self.subject)
        config = {**(state.own_config(self.subject) or {}), **self.changes}
        config = {name: value for name, value in config.items() if value is not None}
        record = config_record(self.subject, config)
        return Decision(tuple(in_each_form(state, Key(CONFIG, self.subject), record)), config)


@dataclass(frozen=True, slots=True)
class DeleteConfig(_AtOnce):
    """The reply is the config as it was."""

    subject: str | None

    def decide(self, state: State, prepared: None) -> Decision:
        before = state.config(self.subject)
        if before is None:
            assert self.subject is not None
            raise subject_not_found(self.subject)
        _check_writable(state, self.subject)
        return Decision(tuple(tombstones(state, Key(CONFIG, self.subject))), before)


@dataclass(frozen=True, slots=True)
class SetMode(_AtOnce):
    """`mode` None takes it back. The reply is the mode."""

    subject: str | None
    mode: str | None
    force: bool = False
    may_change: bool = True

    def decide(self, state: State, prepared: None) -> Decision:
        if self.mode == FORWARD and not is_global_context(self.subject):
            raise invalid_mode("Forward mode only supported on global level")
        if not self.may_change:
            raise not_permitted("Mode changes are not allowed")
        key = Key(MODE, self.subject)
        if self.mode is None:
            return Decision(tuple(tombstones(state, key)), None)
        records: list[Record] = []
        if self.mode == IMPORT and state.mode_in_scope(self.subject) != IMPORT and not self.force:
            records += self._clear(state)
        records += in_each_form(state, key, mode_record(self.subject, self.mode))
        return Decision(tuple(records), self.mode)

    def _clear(self, state: State) -> list[Record]:
        """What was soft-deleted goes for good: its ids and versions may come again."""
        if state.has_subjects(self.subject, deleted=False):
            raise not_permitted("Cannot import since found existing subjects")
        gone = [
            version
            for subject in state.subjects_covered(self.subject)
            for version in state.versions(subject, Which.ALL)
        ]
        records = _keep_max_ids(state, gone)
        for version in gone:
            if state.referrers(version.subject, version.number, deleted=True):
                raise reference_exists(version.subject, version.number)
            records += tombstones(state, Key(SCHEMA, version.subject, version.number))
        return [*records, clear_subject_record(self.subject)]


@dataclass(frozen=True, slots=True)
class DeleteMode(_AtOnce):
    """With `recursive`, of a context, the modes of its subjects too. The reply is the mode as it was, or None."""

    subject: str | None
    recursive: bool = False
    may_change: bool = True

    def decide(self, state: State, prepared: None) -> Decision:
        before = state.mode(self.subject)
        if before is None and not self.recursive:
            assert self.subject is not None
            raise subject_not_found(self.subject)
        if not self.may_change:
            raise not_permitted("Mode changes are not allowed")
        subjects = [self.subject]
        if self.recursive and is_context(self.subject):
            context = context_of(self.subject)
            subjects += [
                name
                for name in state.modes()
                if name is not None and name != self.subject and context_of(name) == context and read_name(name).subject
            ]
        records: list[Record] = []
        for subject in subjects:
            records += tombstones(state, Key(MODE, subject))
        return Decision(tuple(records), before)


# --- what is read, where an error is decided on too ---


def config_of(state: State, subject: str | None, *, in_scope: bool) -> Mapping[str, Any]:
    found = state.config_in_scope(subject) if in_scope else state.config(subject)
    if found is None:
        assert subject is not None
        raise compatibility_not_configured(subject)
    return found


def mode_of(state: State, subject: str | None, *, in_scope: bool) -> str:
    found = state.mode_in_scope(subject) if in_scope else state.mode(subject)
    if found is None:
        assert subject is not None
        raise mode_not_configured(subject)
    return found


def version_of(
    state: State, subject: str, number: int, *, deleted: bool, may_read: Callable[[str], bool] = lambda name: True
) -> Version:
    """A version of the subject, or of its namesake in another context that may be read. Raises `Refused`."""
    version = state.version_anywhere(subject, number, deleted=deleted, may_read=may_read)
    if version is None:
        if not state.has_subjects(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise version_not_found(number)
    return version
