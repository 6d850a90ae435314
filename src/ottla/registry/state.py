"""What the topic `_schemas` says: subjects and their versions, ids, configs and modes. Only `replay` changes it.

Theory of operation. A state is made by replaying records in the order of their offsets, and by nothing else. Of several
forms of a key the latest offset counts. A record that cannot be read changes nothing: it is counted (`unreadable`), and
the load continues. Texts of schemas are not parsed here, so one that is no schema is served as it is.

An id is one schema's within its context. A record that gives an id to a schema that says something else is passed over
and counted (`duplicate_ids`): its writer was not the leader any more. The same schema in another form counts: Karapace
sorts the members of what it writes, also where it writes a version again to delete it. The highest id of a context
never goes back, also if the schema that had it is gone for good: NOOP records carry it then (`max_ids_to_keep`).

The leader decides on a state that is ahead of the log by what it has written and not read back yet. It is a `copy` of
the one that is served. Copies share what they are made of until one of the two changes it.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from ottla.registry.entities import Metadata, RuleSet, guid_text, schema_digest
from ottla.registry.records import (
    CLEAR_SUBJECT,
    CONFIG,
    CONTEXT,
    DELETE_SUBJECT,
    MODE,
    NOOP,
    SCHEMA,
    Key,
    SchemaValue,
    UnreadableRecord,
    key_bytes,
    read_config,
    read_delete_subject,
    read_key,
    read_max_ids,
    read_mode,
    read_schema,
)
from ottla.registry.same_texts import says_the_same
from ottla.registry.subjects import (
    ANY_CONTEXT,
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    context_of,
    covers,
    qualified,
    read_name,
)
from ottla.schemas.registry_port import Reference

LATEST: Final = -1
GLOBAL: Final = f":{GLOBAL_CONTEXT}:"
READWRITE: Final = "READWRITE"
_NO_VERSIONS: Final[Mapping[int, "Version"]] = {}

ValueT = TypeVar("ValueT")


class Version(NamedTuple):
    """One version of a subject. It never changes: a soft delete puts another in its place."""

    subject: str
    number: int
    id: int
    kind: str
    text: str
    references: tuple[Reference, ...]
    metadata: Metadata | None
    rules: RuleSet | None
    deleted: bool
    digest: bytes
    timestamp_ms: int
    given_digest: bytes | None = None
    """What its record has as `md5`."""
    unknown: Mapping[str, Any] | None = None

    @property
    def guid(self) -> str:
        return guid_text(self.digest)

    @property
    def value(self) -> SchemaValue:
        """As it is written."""
        return SchemaValue(
            self.subject,
            self.number,
            self.id,
            self.kind,
            self.text,
            self.references,
            self.metadata,
            self.rules,
            self.deleted,
            self.given_digest,
            self.unknown,
        )


class ContextId(NamedTuple):
    """An id, and the context that it is one of."""

    context: str
    id: int


class Which(Enum):
    """Which versions or subjects are listed."""

    LIVE = "live"
    ALL = "all"
    DELETED = "deleted"

    def takes(self, deleted: bool) -> bool:
        return self is Which.ALL or deleted is (self is Which.DELETED)


Users = tuple[str, int] | dict[str, int]
"""The subjects of an id, each with the version that it is of it: mostly one, and then a pair takes less room."""


class _Context:
    """What is counted for each context."""

    __slots__ = ("digests", "is_announced", "max_id", "referrers", "users")

    def __init__(self) -> None:
        self.max_id = 0
        self.is_announced = False
        self.users: dict[int, Users] = {}
        self.digests: dict[bytes, int] = {}
        self.referrers: dict[tuple[str, int], frozenset[ContextId]] = {}
        """The ids of schemas that refer to a version."""

    def copy(self) -> "_Context":
        other = _Context()
        other.max_id, other.is_announced = self.max_id, self.is_announced
        other.users, other.digests, other.referrers = dict(self.users), dict(self.digests), dict(self.referrers)
        return other


class State:
    """`default_level` is the compatibility of what has no config."""

    def __init__(self, default_level: str = "BACKWARD") -> None:
        self.default_level = default_level
        self.unreadable = 0
        """Records that could not be read."""
        self.duplicate_ids = 0
        """Records that gave an id to a second schema."""
        self.settings_revision = 0
        """Changes with every config and mode."""
        self.forms: dict[Key, tuple[bytes, ...]] = {}
        """Of keys that were seen in another form than ours: all of them that have a record, in ours too."""
        self._revisions: dict[str, int] = {}
        self._subjects: dict[str, dict[int, Version]] = {}
        self._names: list[str] | None = []
        """The subjects in order; None if that has to be found out again."""
        self._contexts: dict[str, _Context] = {DEFAULT_CONTEXT: _Context()}
        self._configs: dict[str | None, Mapping[str, Any]] = {}
        self._modes: dict[str | None, str] = {}
        self._own_subjects: set[str] | None = None
        """Those whose dicts no other state shares; None if that is all."""
        self._own_users: set[ContextId] | None = None

    def copy(self) -> "State":
        """Another that is as this one is now."""
        other = State(self.default_level)
        other.unreadable, other.duplicate_ids = self.unreadable, self.duplicate_ids
        other.settings_revision = self.settings_revision
        other.forms, other._revisions = dict(self.forms), dict(self._revisions)
        other._subjects = dict(self._subjects)
        other._names = None if self._names is None else list(self._names)
        other._contexts = {name: context.copy() for name, context in self._contexts.items()}
        other._configs, other._modes = dict(self._configs), dict(self._modes)
        self._own_subjects, other._own_subjects = set(), set()
        self._own_users, other._own_users = set(), set()
        return other

    # --- replaying ---

    def replay(
        self, key: bytes | None, value: bytes | None, timestamp_ms: int, like: "State | None" = None
    ) -> Key | None:
        """Takes up a record. Returns what it was about, or None if it has changed nothing.

        An empty value counts as none: Karapace deletes with one, where Confluent's registry writes a tombstone. `like`
        is a state that may have replayed the record before: both hold one version then, not two that are equal.
        """
        value = value or None
        try:
            read = read_key(key)
            changed = self._replay(read, value, timestamp_ms, like)
        except UnreadableRecord:
            self.unreadable += 1
            return None
        assert key is not None
        if read.type != NOOP:
            self._note_form(read, key, is_there=value is not None)
        return read if changed else None

    def _replay(self, key: Key, value: bytes | None, timestamp_ms: int, like: "State | None") -> bool:
        if key.type == SCHEMA:
            if value is None:
                return self._remove(key)
            return self._put(key, read_schema(key, value), timestamp_ms, like)
        if key.type == NOOP:
            for name, max_id in read_max_ids(value).items():
                context = self._context(name)
                context.max_id = max(context.max_id, max_id)
            return False
        if key.type == CONFIG:
            self.settings_revision += 1
            return _set(self._configs, key.subject, None if value is None else read_config(value))
        if key.type == MODE:
            self.settings_revision += 1
            return _set(self._modes, key.subject, None if value is None else read_mode(value))
        if key.type == CONTEXT:
            assert key.subject is not None
            self._context(key.subject).is_announced = value is not None
            return True
        if value is None:
            return False
        if key.type == DELETE_SUBJECT:
            return self._delete_up_to(*read_delete_subject(value))
        assert key.type == CLEAR_SUBJECT
        return self._clear(key.subject)

    def _note_form(self, key: Key, form: bytes, *, is_there: bool) -> None:
        seen = self.forms.get(key)
        ours = key_bytes(key)
        if seen is None:
            if form == ours or not is_there:
                return
            seen = (ours,)
        rest = tuple(one for one in seen if one != form)
        seen = (*rest, form) if is_there else rest
        if seen in ((), (ours,)):
            self.forms.pop(key, None)
        else:
            self.forms[key] = seen

    def forms_of(self, key: Key) -> tuple[bytes, ...]:
        """The forms in which a record has to be written, our own last."""
        ours = key_bytes(key)
        return (*(form for form in self.forms.get(key, ()) if form != ours), ours)

    def _put(self, key: Key, value: SchemaValue, timestamp_ms: int, like: "State | None") -> bool:
        subject = key.subject
        assert subject is not None
        name = context_of(subject)
        context = self._context(name)
        known = self._any_user(context, value.id)
        if known is not None and known.text != value.text:
            there = self._subjects.get(subject, _NO_VERSIONS).get(key.version)
            if value.deleted and there is not None and there.id == value.id:
                value = there.value._replace(deleted=True)  # A soft delete, whatever became of its text.
            elif not says_the_same(known.kind, known.text, value.text):
                self.duplicate_ids += 1
                return False
        digest = value.digest or schema_digest(value.text, value.references, value.metadata, value.rules)
        version = Version(
            subject,
            key.version,
            value.id,
            value.kind,
            value.text,
            value.references,
            value.metadata,
            value.rules,
            value.deleted,
            digest,
            timestamp_ms,
            value.digest,
            value.unknown,
        )
        if like is not None and (same := like._subjects.get(subject, _NO_VERSIONS).get(key.version)) == version:
            version, subject, digest = same, same.subject, same.digest
            self._share_subject(subject, like)
        versions = self._subjects.get(subject, _NO_VERSIONS)
        before = versions.get(key.version)
        if before is not version:
            self._versions_to_change(subject)[key.version] = version
        self._revisions[subject] = self._revisions.get(subject, 0) + 1
        context.max_id = max(context.max_id, value.id)
        if before is not None and before.id != value.id:
            self._forget_user(name, context, before)
        self._add_user(name, context, value.id, subject, key.version)
        context.digests[digest] = value.id
        self._refer(name, version)
        return True

    def _refer(self, name: str, version: Version) -> None:
        for reference in version.references:
            meant = qualified(version.subject, reference.subject)
            referrers = self._context(context_of(meant)).referrers
            place = (meant, reference.version)
            referrers[place] = referrers.get(place, frozenset()) | {ContextId(name, version.id)}

    def _add_user(self, name: str, context: _Context, id: int, subject: str, number: int) -> None:
        users = context.users.get(id)
        if users is None or (users.__class__ is tuple and users[0] == subject):
            context.users[id] = (subject, number)
            return
        place = ContextId(name, id)
        if isinstance(users, tuple):
            users = dict([users])
        elif self._own_users is not None and place not in self._own_users:
            users = dict(users)
        if self._own_users is not None:
            self._own_users.add(place)
        users[subject] = number
        context.users[id] = users

    def _remove(self, key: Key) -> bool:
        subject = key.subject
        assert subject is not None
        version = self._subjects.get(subject, _NO_VERSIONS).get(key.version)
        if version is None:
            return False
        versions = self._versions_to_change(subject)
        del versions[key.version]
        self._revisions[subject] = self._revisions.get(subject, 0) + 1
        if not versions:
            del self._subjects[subject]
            if self._names is not None:
                del self._names[bisect_left(self._names, subject)]
        name = context_of(subject)
        self._forget_user(name, self._context(name), version)
        return True

    def _forget_user(self, name: str, context: _Context, version: Version) -> None:
        """A version has its id no longer. The last one of an id takes with it what was known by the id."""
        users = context.users.get(version.id)
        pair = (version.subject, version.number)
        if users == pair:
            del context.users[version.id]
        elif isinstance(users, dict) and users.get(version.subject) == version.number:
            place = ContextId(name, version.id)
            if self._own_users is not None and place not in self._own_users:
                users = context.users[version.id] = dict(users)
                self._own_users.add(place)
            del users[version.subject]
            if not users:
                del context.users[version.id]
        if version.id in context.users:
            return
        if context.digests.get(version.digest) == version.id:
            del context.digests[version.digest]
        for reference in version.references:
            meant = qualified(version.subject, reference.subject)
            referrers = self._context(context_of(meant)).referrers
            place_of_reference = (meant, reference.version)
            left = referrers.get(place_of_reference, frozenset()) - {ContextId(name, version.id)}
            if left:
                referrers[place_of_reference] = left
            else:
                referrers.pop(place_of_reference, None)

    def _delete_up_to(self, subject: str, last: int) -> bool:
        found = [
            one for one in self._subjects.get(subject, _NO_VERSIONS).values() if one.number <= last and not one.deleted
        ]
        if not found:
            return False
        versions = self._versions_to_change(subject)
        for version in found:
            versions[version.number] = version._replace(deleted=True)
        self._revisions[subject] = self._revisions.get(subject, 0) + 1
        return True

    def _clear(self, name: str | None) -> bool:
        gone = [
            Key(SCHEMA, subject, version.number)
            for subject in self.subjects_covered(name)
            for version in self._subjects[subject].values()
            if version.deleted
        ]
        for key in gone:
            self._remove(key)
        return bool(gone)

    def _share_subject(self, subject: str, like: "State") -> None:
        """A new subject of one version is one object for both, until one of the two changes it."""
        if subject in self._subjects or self._own_subjects is None or like._own_subjects is None:
            return
        versions = like._subjects[subject]
        if len(versions) == 1:
            self._add_subject(subject, versions)
            like._own_subjects.discard(subject)

    def _add_subject(self, subject: str, versions: dict[int, Version]) -> None:
        self._subjects[subject] = versions
        if self._names is not None:
            if not self._names or self._names[-1] < subject:
                self._names.append(subject)
            elif len(self._names) > len(self._subjects) // 2 and self._own_subjects is None:
                self._names = None  # While it loads: sorting once is less than finding places.
            else:
                insort(self._names, subject)

    def _versions_to_change(self, subject: str) -> dict[int, Version]:
        versions = self._subjects.get(subject)
        if versions is None:
            versions = {}
            self._add_subject(subject, versions)
        elif self._own_subjects is not None and subject not in self._own_subjects:
            versions = self._subjects[subject] = dict(versions)
        if self._own_subjects is not None:
            self._own_subjects.add(subject)
        return versions

    def _context(self, name: str) -> _Context:
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = _Context()
        return context

    # --- versions ---

    def revision(self, subject: str) -> int:
        """Changes with every change of the subject's versions."""
        return self._revisions.get(subject, 0)

    def versions(self, subject: str, which: Which = Which.LIVE) -> list[Version]:
        """In the order of their numbers."""
        found = self._subjects.get(subject)
        if found is None:
            return []
        return [found[number] for number in sorted(found) if which.takes(found[number].deleted)]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """`LATEST` is the last one that is not deleted, whatever `deleted` says."""
        found = self._subjects.get(subject)
        if found is None:
            return None
        if number == LATEST:
            live = [one.number for one in found.values() if not one.deleted]
            return found[max(live)] if live else None
        version = found.get(number)
        return version if version is not None and (deleted or not version.deleted) else None

    def version_anywhere(
        self, subject: str, number: int, *, deleted: bool = False, may_read: Callable[[str], bool] = lambda name: True
    ) -> Version | None:
        """The same, and if the name is without a context and not there, in the other contexts."""
        for name in self.names_in_contexts(subject):
            version = self.version(name, number, deleted=deleted)
            if version is not None and may_read(name):
                return version
        return None

    def names_in_contexts(self, subject: str) -> Iterator[str]:
        yield subject
        read = read_name(subject)
        if not read.is_qualified:
            for context in self.contexts()[1:]:
                yield f":{context}:{read.subject}"

    def by_digest(self, subject: str, digest: bytes) -> tuple[int, Mapping[str, int]] | None:
        """The id of a schema in the context of a subject, and the versions that it is of subjects."""
        context = self._contexts.get(context_of(subject))
        id = None if context is None else context.digests.get(digest)
        if context is None or id is None or id not in context.users:
            return None
        return id, dict(_pairs(context.users[id]))

    def by_id(self, id: int, subject: str | None = None) -> Version | None:
        """A version with this id: of the subject, if one is named, in whatever context; else any in the context."""
        if subject is None:
            return self._any_user(self._contexts[DEFAULT_CONTEXT], id)
        read = read_name(subject)
        context = self._contexts.get(read.context)
        if not read.subject:
            return None if context is None else self._any_user(context, id)
        for name in self.names_in_contexts(subject):
            number = self._number_of(name, id)
            if number is not None:
                return self._subjects[name][number]
        if read.is_qualified:
            return None
        return self._any_user(self._contexts[DEFAULT_CONTEXT], id)

    def _number_of(self, subject: str, id: int) -> int | None:
        """Which version of the subject the id is."""
        context = self._contexts.get(context_of(subject))
        users = None if context is None else context.users.get(id)
        if isinstance(users, dict):
            return users.get(subject)
        return users[1] if users is not None and users[0] == subject else None

    def _any_user(self, context: _Context, id: int) -> Version | None:
        users = context.users.get(id)
        if users is None:
            return None
        subject, number = users if isinstance(users, tuple) else next(iter(users.items()))
        return self._subjects[subject][number]

    def users(self, context: str, id: int, *, deleted: bool = False) -> list[Version]:
        """The versions of subjects that an id stands for, in the order of subjects."""
        found = self._contexts.get(context)
        users = None if found is None else found.users.get(id)
        if users is None:
            return []
        versions = (self._subjects[subject][number] for subject, number in sorted(_pairs(users)))
        return [version for version in versions if deleted or not version.deleted]

    def ids_of_digest(self, digest: bytes) -> list[ContextId]:
        found = []
        for name in self.contexts():
            context = self._contexts[name]
            id = context.digests.get(digest)
            if id is not None and id in context.users:
                found.append(ContextId(name, id))
        return sorted(found)

    def max_id(self, context: str) -> int:
        found = self._contexts.get(context)
        return 0 if found is None else found.max_id

    def max_ids_to_keep(self) -> dict[str, int]:
        """The highest ids of contexts where no record has them any more."""
        return {
            name: context.max_id
            for name, context in sorted(self._contexts.items())
            if context.max_id and context.max_id not in context.users
        }

    def referrers(self, subject: str, number: int, *, deleted: bool = False) -> list[ContextId]:
        """The ids of schemas that refer to a version; with `deleted`, also of those that are soft-deleted."""
        context = self._contexts.get(context_of(subject))
        found = frozenset() if context is None else context.referrers.get((subject, number), frozenset())
        return sorted(one for one in found if self.users(one.context, one.id, deleted=deleted))

    def resolve(
        self, subject: str, references: Iterable[Reference], *, deleted: bool = True
    ) -> tuple[tuple[Reference, ...], dict[str, str]]:
        """What a schema of the subject refers to: its references, `LATEST` replaced, and all texts by name, each after
        those that it needs itself. Raises `LookupError` that says what is not there."""
        texts: dict[str, str] = {}
        return self._resolve(subject, references, texts, set(), deleted=deleted), texts

    def _resolve(
        self, subject: str, references: Iterable[Reference], texts: dict[str, str], seen: set[str], *, deleted: bool
    ) -> tuple[Reference, ...]:
        resolved = []
        for reference in references:
            meant = qualified(subject, reference.subject)
            version = self.version(meant, reference.version, deleted=deleted)
            if version is None:
                raise LookupError(f'No schema reference found for subject "{meant}" and version {reference.version}')
            if reference.version == LATEST:
                reference = Reference(reference.name, reference.subject, version.number)
            resolved.append(reference)
            if reference.name not in seen:
                seen.add(reference.name)
                if version.references:
                    self._resolve(version.subject, version.references, texts, seen, deleted=deleted)
                texts[reference.name] = version.text
        return tuple(resolved)

    # --- subjects ---

    def names(self) -> list[str]:
        """All subjects, in order. Not to be changed."""
        if self._names is None:
            self._names = sorted(self._subjects)
        return self._names

    def subjects(self, prefix: str = ":*:", which: Which = Which.LIVE) -> list[str]:
        """Those that begin so. A prefix is one within the context that it names; `:*:` stands for every context."""
        return [subject for subject in self._beginning(prefix) if self._is_listed(subject, which)]

    def _is_listed(self, subject: str, which: Which) -> bool:
        """A subject is deleted if all its versions are."""
        return which is Which.ALL or which.takes(all(one.deleted for one in self._subjects[subject].values()))

    def _beginning(self, prefix: str) -> Iterable[str]:
        names = self.names()
        if prefix == ":*:":
            return names
        read = read_name(prefix)
        if read.context == ANY_CONTEXT:
            return [name for name in names if read_name(name).subject.startswith(read.subject)]
        if not read.is_qualified:
            found = _from(names, read.subject) if read.subject else names
            return [name for name in found if not name.startswith(":.")]
        return _from(names, prefix)

    def subjects_covered(self, name: str | None, *, deleted: bool = True) -> list[str]:
        """The subject of this name, or those of the context that it names."""
        if name is not None and read_name(name).subject:
            found = [name] if name in self._subjects else []
        else:
            found = [subject for subject in self.names() if covers(name, subject)]
        return found if deleted else [subject for subject in found if self._is_listed(subject, Which.LIVE)]

    def has_subjects(self, name: str | None, *, deleted: bool) -> bool:
        if name is not None and read_name(name).subject:
            return name in self._subjects and (deleted or self._is_listed(name, Which.LIVE))
        return bool(self.subjects_covered(name, deleted=deleted))

    def contexts(self) -> list[str]:
        """The default one first."""
        others = sorted(name for name, one in self._contexts.items() if one.is_announced and name != DEFAULT_CONTEXT)
        return [DEFAULT_CONTEXT, *others]

    def is_announced(self, context: str) -> bool:
        return context == DEFAULT_CONTEXT or (context in self._contexts and self._contexts[context].is_announced)

    def counts(self) -> tuple[int, int]:
        """How many subjects there are, and how many versions, those that are deleted included."""
        return len(self._subjects), sum(map(len, self._subjects.values()))

    # --- settings ---

    def config(self, subject: str | None) -> Mapping[str, Any] | None:
        """What is set for this name alone. None is the default context."""
        found = self._configs.get(subject)
        if found is not None:
            return self._with_level(found)
        if subject is None or read_name(subject).context == GLOBAL_CONTEXT:
            return self._with_level({})
        return None

    def config_in_scope(self, subject: str | None) -> Mapping[str, Any]:
        """What counts for a subject: its own, or that of its context, or the global one, or the default."""
        return self._with_level(_in_scope(self._configs, subject) or {})

    def _with_level(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return config if config.get("compatibilityLevel") else {**config, "compatibilityLevel": self.default_level}

    def own_config(self, subject: str | None) -> Mapping[str, Any] | None:
        """The config's record, without a level that it does not have."""
        return self._configs.get(subject)

    def configs(self) -> Mapping[str | None, Mapping[str, Any]]:
        return self._configs

    def mode(self, subject: str | None) -> str | None:
        found = self._modes.get(subject)
        if found is None and (subject is None or read_name(subject).context == GLOBAL_CONTEXT):
            return READWRITE
        return found

    def mode_in_scope(self, subject: str | None) -> str:
        return _in_scope(self._modes, subject) or READWRITE

    def own_mode(self, subject: str | None) -> str | None:
        return self._modes.get(subject)

    def modes(self) -> Mapping[str | None, str]:
        return self._modes

    def alias(self, subject: str) -> str:
        """The subject that a name stands for: itself, or what its config has as `alias`."""
        alias = (self._configs.get(subject) or {}).get("alias")
        return qualified(subject, alias) if alias else subject

    def aliases(self) -> dict[str, list[str]]:
        """The names that stand for each subject."""
        found: dict[str, list[str]] = {}
        for name, config in self._configs.items():
            if name is not None and config.get("alias"):
                found.setdefault(qualified(name, config["alias"]), []).append(name)
        return found


def _pairs(users: Users) -> Iterable[tuple[str, int]]:
    return (users,) if isinstance(users, tuple) else users.items()


def _set(values: dict[str | None, ValueT], subject: str | None, value: ValueT | None) -> bool:
    if value is None:
        return values.pop(subject, None) is not None
    values[subject] = value
    return True


def _in_scope(values: Mapping[str | None, ValueT], subject: str | None) -> ValueT | None:
    found = values.get(subject)
    if found is None and subject is not None:
        found = values.get(read_name(subject).prefix or None)
    return values.get(GLOBAL) if found is None else found


def _from(names: list[str], prefix: str) -> list[str]:
    """Those that begin so, of names in order."""
    first = last = bisect_left(names, prefix)
    while last < len(names) and names[last].startswith(prefix):
        last += 1
    return names[first:last]
