"""What the registry answers: one row for each operation of Confluent's API, and the functions that answer them.

A row names method, path, query parameters and function. Paths under `/contexts/.ctx/` are the same ones with the
subjects of that context, and a subject that is an alias stands for the one that its config names.

Reads are answered from the state at once. What has to be parsed for a reply, and every change, is promised.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ottla.base.errors import OttlaError
from ottla.client.promise import Promise, spawn
from ottla.registry.access import Access, Right, require
from ottla.registry.decisions import (
    Command,
    DeleteConfig,
    DeleteContext,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    NewSchema,
    Register,
    Registration,
    SetConfig,
    SetMode,
    candidates,
    compatibility,
    config_of,
    has_defaults,
    mode_of,
    schema_text,
    validates_fields,
    version_of,
)
from ottla.registry.entities import merge_rules, read_guid, rule_types, with_version, without_rules
from ottla.registry.json_form import json_bytes
from ottla.registry.lookups import look_up_anywhere, look_up_once
from ottla.registry.refusals import (
    Refused,
    bad_request,
    invalid_rules,
    invalid_schema,
    invalid_subject,
    not_found,
    not_here_yet,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from ottla.registry.replies import (
    changed_config_object,
    config_object,
    id_object,
    qualified_references,
    registration_object,
    tag_objects,
    version_object,
)
from ottla.registry.requests import (
    Parameters,
    body_object,
    config_changes,
    flag_field,
    id_number,
    mode_field,
    names_field,
    new_schema,
    number_field,
    optional_metadata,
    rule_set,
    segments_of,
    tags_field,
    version_number,
)
from ottla.registry.state import LATEST, State, Version, Which
from ottla.registry.subjects import (
    DEFAULT_CONTEXT,
    context_name,
    context_of,
    is_default_context,
    is_valid,
    normalized,
    qualified,
    read_name,
)
from ottla.registry.texts import SchemaText, Texts, rendered


class ApiSettings(NamedTuple):
    """What requests are answered by."""

    validates_fields: bool = False
    validates_new_schemas: bool = True
    may_change_modes: bool = True
    rejects_empty_subjects: bool = True
    schema_limit: int = 1000
    most_schemas: int = 1000
    no_limit: int = (1 << 31) - 1


class Service(Protocol):
    """What the API is a face of."""

    @property
    def state(self) -> State:
        """What is committed."""
        ...

    @property
    def texts(self) -> Texts: ...

    @property
    def settings(self) -> ApiSettings: ...

    def change(self, command: Command[Any]) -> Promise[Any]:
        """Decides, writes and waits. Rejected with `Refused`, or with `NotLeader`: then the request is passed on."""
        ...

    def about(self, what: str) -> Any:
        """`id` and `version` of `/v1/metadata`, and what Karapace's `/_health` and `/master_available` tell."""
        ...


class NotLeader(OttlaError):
    """Another registry decides on changes."""


class LeadsHere(OttlaError):
    """This registry decides on changes, by now."""


class Raw(NamedTuple):
    """A body that is no JSON of ours: the text of a schema."""

    body: bytes


class NoContent(NamedTuple):
    """204."""


Answer = Any
"""What becomes the JSON of a reply; `Raw`, `NoContent`, or a promise of one of them."""


class Question:
    """One request, taken apart. `subject` is that of the path, with its context, and what an alias stands for."""

    __slots__ = ("access", "body", "parameters", "segments", "state", "values")

    def __init__(self, segments: list[str], parameters: Parameters, body: bytes, access: Access, state: State) -> None:
        self.segments = segments
        self.parameters = parameters
        self.body = body
        self.access = access
        self.state = state
        self.values: dict[str, str] = {}

    @property
    def subject(self) -> str:
        return self.values["subject"]

    def require(self, right: Right, subject: str | None) -> None:
        require(self.access, right, subject)

    def may_read(self, subject: str) -> bool:
        return self.access.may(Right.READ, subject)

    def new_schema(self, found: Mapping[str, Any]) -> NewSchema:
        """The schema of the body. What it refers to must be the client's to read: a reply may have it written out.
        Raises `Refused`."""
        schema = new_schema(found)
        for reference in schema.references:
            self.require(Right.READ, normalized(qualified(self.subject, reference.subject)))
        return schema

    def page(self, found: Iterable[Any], default: int, most: int) -> list[Any]:
        """From `offset` on, `limit` of them at most."""
        offset, limit = self.parameters.integer("offset", 0), self.parameters.integer("limit", -1)
        if not 0 < limit <= most:
            limit = default
        if offset < 0:
            raise bad_request("offset must not be negative")
        listed = found if isinstance(found, list) else list(found)
        return listed[offset : offset + limit]


class Api:
    """Answers questions, in the order of the table at the end of this file."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tree = _tree(ROUTES)

    def ask(self, method: str, target: str, body: bytes, access: Access) -> Answer:
        """Raises `Refused`, or promises an answer that may be rejected with it."""
        path, _, query = target.partition("?")
        segments, context = in_context(segments_of(path))
        question = Question(segments, Parameters(query), body, access, self._service.state)
        route = self._find(method, question)
        self._set_subject(question, route, context)
        return route.answer(self, question)

    def _find(self, method: str, question: Question) -> "Route":
        if question.segments[0] in LATER:
            raise not_here_yet(question.segments[0])
        node: dict[str | None, Any] = self._tree
        captured: list[str] = []
        for segment in question.segments:
            found = node.get(segment)
            if found is None:
                found = node.get("{}")
                if found is None:
                    raise not_found()
                captured.append(segment)
            node = found
        routes: Mapping[str, Route] = node.get(None, {})
        route = routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise Refused(405, 405, "HTTP 405 Method Not Allowed") if routes else not_found()
        question.values.update(zip(route.names, captured, strict=True))
        return route

    def _set_subject(self, question: Question, route: "Route", context: str | None) -> None:
        """The subject with its context, and what its name stands for."""
        values, state = question.values, question.state
        subject = values.get("subject")
        if subject is not None:
            if context and not subject.startswith((":.", ":*:")):
                subject = context + subject
            if route.takes_aliases:
                subject = state.alias(normalized(subject))
            values["subject"] = normalized(subject)
        if route.scopes_prefix:
            prefix = question.parameters.optional("subjectPrefix")
            if context and not (prefix or "").startswith((":.", ":*:")):
                prefix = context + (prefix or "")
            values["prefix"] = route.scopes_prefix if prefix is None else prefix
        if route.scopes_id:
            named = question.parameters.optional("subject")
            if context and not (named or "").startswith((":.", ":*:")):
                named = context + (named or "")
            if named:
                values["of"] = state.alias(normalized(named))

    # --- the service ---

    def root(self, question: Question) -> Answer:
        return {}

    def about(self, question: Question) -> Answer:
        return self._service.about(question.segments[-1])

    # --- subjects ---

    def subjects(self, question: Question) -> Answer:
        parameters = question.parameters
        which = Which.LIVE
        if parameters.flag("deletedOnly"):
            which = Which.DELETED
        elif parameters.flag("deleted"):
            which = Which.ALL
        found = question.state.subjects(question.values["prefix"], which)
        allowed = [subject for subject in found if question.may_read(subject)]
        return question.page(allowed, self._no_limit, self._no_limit)

    @property
    def _no_limit(self) -> int:
        return self._service.settings.no_limit

    def look_up(self, question: Question) -> Answer:
        question.require(Right.READ, question.subject)
        return spawn(self._look_up(question, question.new_schema(body_object(question.body))))

    async def _look_up(self, question: Question, schema: NewSchema) -> Answer:
        subject, deleted = question.subject, question.parameters.flag("deleted")
        service = self._service
        found = await look_up_anywhere(
            service.state,
            service.texts,
            subject,
            schema,
            normalize=self._normalizes(question),
            deleted=deleted,
            fields_default=service.settings.validates_fields,
            may_read=question.may_read,
        )
        if found is None:
            if not service.state.has_subjects(subject, deleted=deleted):
                raise subject_not_found(subject)
            raise schema_not_found()
        return version_object(found, text=await self._formatted(question, found))

    def _normalizes(self, question: Question) -> bool:
        if question.parameters.flag("normalize"):
            return True
        return bool(self._service.state.config_in_scope(question.subject).get("normalize"))

    async def _formatted(self, question: Question, version: Version) -> str | None:
        """The text in the format that was asked for; None if that is the one it has."""
        format = question.parameters.text("format").strip()
        if not format:
            return None
        found = candidates(self._service.state, [version])
        if not found:
            raise invalid_schema("a schema that this one refers to is not there")
        understood = await self._service.texts.understand(found[0].given)
        return await self._service.texts.on_worker(lambda: rendered(understood, format))

    def latest_with_metadata(self, question: Question) -> Answer:
        question.require(Right.READ, question.subject)
        parameters, state = question.parameters, question.state
        deleted = parameters.flag("deleted")
        wanted = dict(zip(parameters.texts("key"), parameters.texts("value"), strict=False))
        for version in reversed(state.versions(question.subject, Which.ALL if deleted else Which.LIVE)):
            properties = None if version.metadata is None else version.metadata.get("properties", {})
            if properties is not None and wanted.items() <= properties.items():
                return self._version_reply(question, version)
        if not state.has_subjects(question.subject, deleted=deleted):
            raise subject_not_found(question.subject)
        raise schema_not_found()

    def delete_subject(self, question: Question) -> Answer:
        question.require(Right.WRITE, question.subject)
        return self._service.change(DeleteSubject(question.subject, question.parameters.flag("permanent")))

    # --- versions ---

    def versions(self, question: Question) -> Answer:
        question.require(Right.READ, question.subject)
        parameters, state, subject = question.parameters, question.state, question.subject
        deleted, deleted_only = parameters.flag("deleted"), parameters.flag("deletedOnly")
        if not state.has_subjects(subject, deleted=deleted or deleted_only):
            raise subject_not_found(subject)
        if parameters.flag("deletedAsNegative"):
            numbers = [-one.number if one.deleted else one.number for one in state.versions(subject, Which.ALL)]
        else:
            which = Which.DELETED if deleted_only else Which.ALL if deleted else Which.LIVE
            numbers = [one.number for one in state.versions(subject, which)]
        return question.page(numbers, self._no_limit, self._no_limit)

    def _version(self, question: Question, *, deleted: bool) -> Version:
        question.require(Right.READ, question.subject)
        number = version_number(question.values["version"])
        return version_of(question.state, question.subject, number, deleted=deleted, may_read=question.may_read)

    def version(self, question: Question) -> Answer:
        version = self._version(question, deleted=question.parameters.flag("deleted"))
        return self._version_reply(question, version)

    def _version_reply(self, question: Question, version: Version) -> Answer:
        parameters = question.parameters
        references = version.references
        if parameters.text("referenceFormat") == "qualified":
            references = qualified_references(version)
        wanted = parameters.texts("findTags")
        if not wanted and not parameters.text("format").strip():
            return version_object(version, references=references)

        async def reply() -> Answer:
            tags = await self._tags(version, wanted) if wanted else None
            text = await self._formatted(question, version)
            return version_object(version, text=text, references=references, tags=tags)

        return spawn(reply())

    async def _tags(self, version: Version, wanted: list[str]) -> list[dict[str, Any]]:
        found = candidates(self._service.state, [version])
        if not found:
            return []
        understood = await self._service.texts.understand(found[0].given)
        return await self._service.texts.on_worker(lambda: tag_objects(understood.parsed.tagged_entities(), wanted))

    def version_text(self, question: Question) -> Answer:
        version = self._version(question, deleted=question.parameters.flag("deleted"))
        return self._text_reply(question, version)

    def _text_reply(self, question: Question, version: Version) -> Answer:
        if not question.parameters.text("format").strip():
            return Raw(version.text.encode("utf-8", "surrogatepass"))

        async def reply() -> Answer:
            text = await self._formatted(question, version)
            assert text is not None
            return Raw(text.encode("utf-8", "surrogatepass"))

        return spawn(reply())

    def referenced_by(self, question: Question) -> Answer:
        version = self._version(question, deleted=True)
        deleted = question.parameters.flag("deleted")
        state = question.state
        ids = [
            one.id
            for one in state.referrers(version.subject, version.number, deleted=deleted)
            if any(question.may_read(user.subject) for user in state.users(one.context, one.id, deleted=deleted))
        ]
        settings = self._service.settings
        return question.page(ids, settings.schema_limit, settings.most_schemas)

    def delete_version(self, question: Question) -> Answer:
        question.require(Right.WRITE, question.subject)
        number = version_number(question.values["version"])
        return self._service.change(DeleteVersion(question.subject, number, question.parameters.flag("permanent")))

    # --- registering ---

    def register(self, question: Question) -> Answer:
        subject = question.subject
        question.require(Right.WRITE, subject)
        found = body_object(question.body)
        schema = question.new_schema(found)
        if not is_valid(subject) or (self._service.settings.rejects_empty_subjects and not read_name(subject).subject):
            raise invalid_subject(subject)
        settings = self._service.settings
        command = Register(
            subject,
            schema,
            normalize=self._normalizes(question),
            propagates_tags=flag_field(found, "propagateSchemaTags"),
            add_tags=tags_field(found, "schemaTagsToAdd"),
            remove_tags=tags_field(found, "schemaTagsToRemove"),
            validates_fields=settings.validates_fields,
            validates_new=settings.validates_new_schemas,
        )
        return spawn(self._register(question, command))

    async def _register(self, question: Question, command: Register) -> Answer:
        existing = await self._existing(command)
        format = question.parameters.text("format").strip()
        as_sent = command.schema.text if is_descriptor(command.schema) and not format else None
        if existing is not None:
            return version_reply_of_registration(existing, as_sent or await self._formatted(question, existing))
        registered: Registration = await self._service.change(command)
        text = as_sent if not format else await self._formatted_registration(command.subject, registered, format)
        return registration_object(registered, text)

    async def _existing(self, command: Register) -> Version | None:
        """The version that the schema is already: any registry says it, and in any mode."""
        service = self._service
        subject, schema = command.subject, command.schema
        config = service.state.config_in_scope(subject)
        if command.add_tags or command.remove_tags or command.propagates_tags or has_defaults(config):
            return None
        if not service.state.has_subjects(subject, deleted=False):
            return None
        is_latest = schema.version == LATEST
        existing = await look_up_once(
            service.state,
            service.texts,
            subject,
            schema,
            config,
            normalize=command.normalize,
            deleted=False,
            fields_default=service.settings.validates_fields,
            latest_only=is_latest,
        )
        if existing is None:
            return None
        if schema.version == 0 or is_latest:
            return existing if schema.id in (-1, existing.id) else None
        if existing.id != schema.id:
            return None
        if existing.number == schema.version:
            return existing
        other = service.state.version(subject, schema.version)
        return other if other is not None and other.digest == existing.digest else None

    async def _formatted_registration(self, subject: str, registered: Registration, format: str) -> str:
        texts = self._service.texts
        understood = await texts.understand(schema_text(self._service.state, subject, registered.schema))
        return await texts.on_worker(lambda: rendered(understood, format))

    def modify_tags(self, question: Question) -> Answer:
        subject = question.subject
        question.require(Right.WRITE, subject)
        found = body_object(question.body)
        if not is_valid(subject):
            raise invalid_subject(subject)
        number = version_number(question.values["version"])
        version = version_of(question.state, subject, number, deleted=False, may_read=question.may_read)
        given, to_merge = rule_set(found, "ruleSet"), rule_set(found, "rulesToMerge")
        to_remove = names_field(found, "rulesToRemove")
        if given is not None and (to_merge is not None or to_remove is not None):
            raise invalid_rules("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
        new_version = number_field(found, "newVersion") or 0
        rules = given
        if to_merge is not None or to_remove is not None:
            before = question.state.version(subject, new_version - 1 if new_version > 1 else LATEST)
            rules = merge_rules(None if before is None else before.rules, to_merge)
            rules = without_rules(rules, to_remove or ())
        metadata = optional_metadata(found)
        schema = NewSchema(
            version.kind,
            version.text,
            version.references,
            with_version(version.metadata if metadata is None else metadata, new_version),
            rules,
            new_version,
        )
        command = Register(
            subject,
            schema,
            add_tags=tags_field(found, "tagsToAdd"),
            remove_tags=tags_field(found, "tagsToRemove"),
            validates_fields=self._service.settings.validates_fields,
            validates_new=self._service.settings.validates_new_schemas,
        )

        async def change() -> Answer:
            return registration_object(await self._service.change(command))

        return spawn(change())

    # --- schemas by id, guid and prefix ---

    def _by_id(self, question: Question, *, is_named: bool = True) -> Version:
        id = id_number(question.values["id"])
        version = self._readable(question, question.state.by_id(id, question.values.get("of")))
        if version is None:
            raise schema_not_found(id if is_named else None)
        return version

    def _readable(self, question: Question, version: Version | None) -> Version | None:
        """The version, or another one with its id, if it is of a subject that may be read."""
        if version is None or question.may_read(version.subject):
            return version
        users = question.state.users(context_of(version.subject), version.id, deleted=True)
        return next((user for user in users if question.may_read(user.subject)), None)

    def schema_by_id(self, question: Question) -> Answer:
        version = self._by_id(question)
        return self._id_reply(question, version, with_subject=question.parameters.optional("subject") is not None)

    def _id_reply(self, question: Question, version: Version, *, with_subject: bool) -> Answer:
        parameters = question.parameters
        max_id = question.state.max_id(context_of(version.subject)) if parameters.flag("fetchMaxId") else None
        references = version.references
        if with_subject and parameters.text("referenceFormat") == "qualified":
            references = qualified_references(version)
        wanted = parameters.texts("findTags")
        if not wanted and not parameters.text("format").strip():
            return id_object(version, with_subject=with_subject, references=references, max_id=max_id)

        async def reply() -> Answer:
            tags = await self._tags(version, wanted) if wanted else None
            text = await self._formatted(question, version)
            return id_object(
                version, with_subject=with_subject, text=text, references=references, tags=tags, max_id=max_id
            )

        return spawn(reply())

    def text_by_id(self, question: Question) -> Answer:
        return self._text_reply(question, self._by_id(question))

    def _users(self, question: Question) -> list[Version]:
        version = self._by_id(question, is_named=False)
        deleted = question.parameters.flag("deleted")
        users = question.state.users(context_of(version.subject), version.id, deleted=deleted)
        return [user for user in users if question.may_read(user.subject)]

    def subjects_by_id(self, question: Question) -> Answer:
        subjects = dict.fromkeys(user.subject for user in self._users(question))
        return question.page(subjects, self._no_limit, self._no_limit)

    def versions_by_id(self, question: Question) -> Answer:
        pairs = [{"subject": user.subject, "version": user.number} for user in self._users(question)]
        return question.page(pairs, self._no_limit, self._no_limit)

    def schema_by_guid(self, question: Question) -> Answer:
        guid = question.values["guid"]
        digest = read_guid(guid)
        for one in question.state.ids_of_digest(digest) if digest else ():
            version = self._readable(question, question.state.by_id(one.id, _prefix(one.context)))
            if version is not None:
                return self._id_reply(question, version, with_subject=False)
        raise schema_not_found(guid)

    def ids_by_guid(self, question: Question) -> Answer:
        digest = read_guid(question.values["guid"])
        found = []
        for one in question.state.ids_of_digest(digest) if digest else ():
            version = question.state.by_id(one.id, _prefix(one.context))
            if self._readable(question, version) is not None:
                found.append({"context": one.context, "id": one.id})
        return found

    def types(self, question: Question) -> Answer:
        return ["JSON", "PROTOBUF", "AVRO"]

    def schemas(self, question: Question) -> Answer:
        parameters, state = question.parameters, question.state
        prefix = question.values["prefix"]
        which = Which.ALL if parameters.flag("deleted") else Which.LIVE
        rule_type = parameters.text("ruleType")
        aliases = state.aliases() if parameters.flag("aliases") else {}
        subjects = set(state.subjects(prefix, Which.ALL))
        for subject, names in aliases.items():
            if any(_is_under(name, prefix) for name in names):
                subjects.add(subject)
        found: list[tuple[Version, list[str] | None]] = []
        for subject in sorted(subjects):
            if not question.may_read(subject):
                continue
            versions = state.versions(subject, which)
            shown = [name for name in aliases[subject] if question.may_read(name)] if subject in aliases else None
            found += [
                (version, shown)
                for version in (versions[-1:] if parameters.flag("latestOnly") else versions)
                if not rule_type or rule_type in rule_types(version.rules)
            ]
        settings = self._service.settings
        page = question.page(found, settings.schema_limit, settings.most_schemas)
        return [version_object(version, aliases=shown) for version, shown in page]

    # --- compatibility ---

    def test_version(self, question: Question) -> Answer:
        question.require(Right.READ, question.subject)
        number = version_number(question.values["version"])
        version = question.state.version(question.subject, number)
        if version is None and number != LATEST:
            raise version_not_found(number)
        schema = question.new_schema(body_object(question.body))
        return spawn(self._test(question, schema, [] if version is None else [version]))

    def test_subject(self, question: Question) -> Answer:
        question.require(Right.READ, question.subject)
        schema = question.new_schema(body_object(question.body))
        return spawn(self._test(question, schema, list(reversed(question.state.versions(question.subject)))))

    async def _test(self, question: Question, schema: NewSchema, versions: list[Version]) -> Answer:
        """`versions`: those that it is held against, the newest first."""
        is_verbose = question.parameters.flag("verbose")
        try:
            messages = await self._messages(question, schema, versions)
        except Refused as refused:
            if not is_verbose or refused.code != 42201:
                raise
            messages = [refused.message]
        reply: dict[str, Any] = {"is_compatible": not messages}
        return reply | {"messages": messages} if is_verbose else reply

    async def _messages(self, question: Question, schema: NewSchema, versions: list[Version]) -> list[str]:
        service, subject = self._service, question.subject
        state, texts = service.state, service.texts
        config = state.config_in_scope(subject)
        if not schema.text.strip():
            raise invalid_schema("Empty schema")
        checks = config.get("validateNewSchemas")
        fields = validates_fields(config, service.settings.validates_fields)
        imports = state.mode_in_scope(subject) in ("IMPORT", "FORWARD")
        given: SchemaText = schema_text(
            state,
            subject,
            schema,
            as_new=service.settings.validates_new_schemas if checks is None else bool(checks),
            normalize=self._normalizes(question),
            strict=None if imports else fields,
        )
        understood = await texts.understand(given)
        previous = candidates(state, versions)
        return await texts.on_worker(
            lambda: compatibility(texts, config, understood.parsed, schema.metadata, previous, validate_fields=fields)
        )

    # --- config ---

    @staticmethod
    def _named(question: Question) -> str | None:
        """The subject that a setting is for; None is the default context."""
        subject = question.values.get("subject")
        return None if subject is None or is_default_context(subject) else subject

    def config(self, question: Question) -> Answer:
        subject = self._named(question)
        question.require(Right.READ, subject)
        in_scope = question.parameters.flag("defaultToGlobal")
        return config_object(config_of(question.state, subject, in_scope=in_scope))

    def set_config(self, question: Question) -> Answer:
        subject = self._named(question)
        question.require(Right.WRITE, subject)
        changes = config_changes(body_object(question.body))
        if subject is not None and not is_valid(subject, may_be_global=True):
            raise invalid_subject(subject)

        async def change() -> Answer:
            return changed_config_object(await self._service.change(SetConfig(subject, changes)))

        return spawn(change())

    def delete_config(self, question: Question) -> Answer:
        subject = self._named(question)
        question.require(Right.WRITE, subject)

        async def change() -> Answer:
            return config_object(await self._service.change(DeleteConfig(subject)))

        return spawn(change())

    # --- mode ---

    def mode(self, question: Question) -> Answer:
        subject = self._named(question)
        question.require(Right.READ, subject)
        return {"mode": mode_of(question.state, subject, in_scope=question.parameters.flag("defaultToGlobal"))}

    def set_mode(self, question: Question) -> Answer:
        subject = question.values.get("subject")
        question.require(Right.WRITE, self._named(question))
        if subject is not None and not is_valid(subject, may_be_global=True):
            raise invalid_subject(subject)
        mode = mode_field(body_object(question.body))
        command = SetMode(
            self._named(question),
            mode,
            question.parameters.flag("force"),
            self._service.settings.may_change_modes,
        )

        async def change() -> Answer:
            return {"mode": await self._service.change(command)}

        return spawn(change())

    def delete_mode(self, question: Question) -> Answer:
        subject = self._named(question)
        question.require(Right.WRITE, subject)
        command = DeleteMode(subject, question.parameters.flag("recursive"), self._service.settings.may_change_modes)

        async def change() -> Answer:
            mode = await self._service.change(command)
            return {} if mode is None else {"mode": mode}

        return spawn(change())

    # --- contexts ---

    def contexts(self, question: Question) -> Answer:
        prefix = question.parameters.text("contextPrefix")
        found = [
            context
            for context in question.state.contexts()
            if context.startswith(prefix) and self._may_see(question, context)
        ]
        return question.page(found, self._no_limit, self._no_limit)

    @staticmethod
    def _may_see(question: Question, context: str) -> bool:
        """Whether something of the context may be read: its names are names of subjects, too."""
        if context == DEFAULT_CONTEXT or question.access.may_configure(Right.READ):
            return True
        return any(map(question.may_read, question.state.subjects_covered(_prefix(context))))

    def delete_context(self, question: Question) -> Answer:
        question.require(Right.WRITE, None)
        try:
            context = context_name(question.values["context"])
        except ValueError as problem:
            raise bad_request(str(problem)) from None

        async def change() -> Answer:
            await self._service.change(DeleteContext(context))
            return NoContent()

        return spawn(change())


def version_reply_of_registration(version: Version, text: str | None) -> dict[str, Any]:
    """A schema that was registered before, in the form of one that is now."""
    schema = NewSchema(version.kind, version.text, version.references, version.metadata, version.rules)
    return registration_object(Registration(version.number, version.id, schema, version.digest), text)


def is_descriptor(schema: NewSchema) -> bool:
    """Whether a Protobuf schema was sent as a descriptor in base64. A client that does so keeps the text of the reply,
    and takes it for one when it decodes: confluent-kafka for Python is such a client."""
    return schema.kind == "PROTOBUF" and not any(letter in schema.text for letter in " {;")


def _prefix(context: str) -> str:
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def _is_under(name: str, prefix: str) -> bool:
    read = read_name(prefix)
    if read.context == "*":
        return read_name(name).subject.startswith(read.subject)
    return read_name(name).context == read.context and read_name(name).subject.startswith(read.subject)


def in_context(segments: list[str]) -> tuple[list[str], str | None]:
    """A path under `/contexts/.ctx/` is one without it, and what stands before its subjects. Raises `Refused` (400)."""
    if segments[0] != "contexts" or len(segments) < 3:
        return segments, None
    try:
        context = context_name(segments[1])
    except ValueError as problem:
        raise bad_request(str(problem)) from None
    rest = segments[2:]
    if rest in (["config"], ["mode"]) and context:
        rest = [*rest, context]
    return rest, context


# --- the table ---


class Route(NamedTuple):
    """One operation. `parameters` are those of its query."""

    method: str
    path: str
    answer: Callable[[Api, Question], Answer]
    parameters: tuple[str, ...] = ()
    scopes_prefix: str = ""
    """What `subjectPrefix` is where none is given; empty for operations that take none."""
    scopes_id: bool = False
    """Whether the query's `subject` says in which context an id is looked for."""
    takes_aliases: bool = True
    is_read: bool = True
    """Whether it is answered from the state alone, and the same way until that changes."""

    @property
    def names(self) -> list[str]:
        """What is captured of the path, in order."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


_PAGE: Final = ("offset", "limit")
_VERSIONS: Final = "/subjects/{subject}/versions"
_VERSION: Final = f"{_VERSIONS}/{{version}}"
_TESTS: Final = f"/compatibility{_VERSIONS}"

ROUTES: Final = (
    Route("GET", "/", Api.root),
    Route("POST", "/", Api.root, is_read=False),
    Route("GET", "/subjects", Api.subjects, ("subjectPrefix", "deleted", "deletedOnly", *_PAGE), scopes_prefix=":*:"),
    Route("POST", "/subjects/{subject}", Api.look_up, ("normalize", "format", "deleted"), is_read=False),
    Route("DELETE", "/subjects/{subject}", Api.delete_subject, ("permanent",), is_read=False),
    Route("GET", "/subjects/{subject}/metadata", Api.latest_with_metadata, ("key", "value", "format", "deleted")),
    Route("GET", _VERSIONS, Api.versions, ("deleted", "deletedOnly", "deletedAsNegative", *_PAGE)),
    Route("POST", _VERSIONS, Api.register, ("normalize", "format"), is_read=False),
    Route("GET", _VERSION, Api.version, ("format", "referenceFormat", "deleted", "findTags")),
    Route("DELETE", _VERSION, Api.delete_version, ("permanent",), is_read=False),
    Route("GET", f"{_VERSION}/schema", Api.version_text, ("format", "deleted")),
    Route("GET", f"{_VERSION}/referencedby", Api.referenced_by, ("deleted", *_PAGE)),
    Route("POST", f"{_VERSION}/tags", Api.modify_tags, is_read=False),
    Route(
        "GET",
        "/schemas",
        Api.schemas,
        ("subjectPrefix", "aliases", "deleted", "latestOnly", "ruleType", *_PAGE),
        scopes_prefix=":.:",
    ),
    Route("GET", "/schemas/types", Api.types),
    Route(
        "GET",
        "/schemas/ids/{id}",
        Api.schema_by_id,
        ("subject", "format", "referenceFormat", "findTags", "fetchMaxId"),
        scopes_id=True,
    ),
    Route("GET", "/schemas/ids/{id}/schema", Api.text_by_id, ("subject", "format"), scopes_id=True),
    Route("GET", "/schemas/ids/{id}/subjects", Api.subjects_by_id, ("subject", "deleted", *_PAGE), scopes_id=True),
    Route("GET", "/schemas/ids/{id}/versions", Api.versions_by_id, ("subject", "deleted", *_PAGE), scopes_id=True),
    Route("GET", "/schemas/guids/{guid}", Api.schema_by_guid, ("format",)),
    Route("GET", "/schemas/guids/{guid}/ids", Api.ids_by_guid),
    Route("POST", _TESTS, Api.test_subject, ("normalize", "verbose"), is_read=False),
    Route("POST", f"{_TESTS}/{{version}}", Api.test_version, ("normalize", "verbose"), is_read=False),
    Route("GET", "/config", Api.config, ("defaultToGlobal",)),
    Route("PUT", "/config", Api.set_config, is_read=False),
    Route("DELETE", "/config", Api.delete_config, is_read=False),
    Route("GET", "/config/{subject}", Api.config, ("defaultToGlobal",), takes_aliases=False),
    Route("PUT", "/config/{subject}", Api.set_config, takes_aliases=False, is_read=False),
    Route("DELETE", "/config/{subject}", Api.delete_config, takes_aliases=False, is_read=False),
    Route("GET", "/mode", Api.mode, ("defaultToGlobal",)),
    Route("PUT", "/mode", Api.set_mode, ("force",), is_read=False),
    Route("DELETE", "/mode", Api.delete_mode, ("recursive",), is_read=False),
    Route("GET", "/mode/{subject}", Api.mode, ("defaultToGlobal",), takes_aliases=False),
    Route("PUT", "/mode/{subject}", Api.set_mode, ("force",), takes_aliases=False, is_read=False),
    Route("DELETE", "/mode/{subject}", Api.delete_mode, ("recursive",), takes_aliases=False, is_read=False),
    Route("GET", "/contexts", Api.contexts, ("contextPrefix", *_PAGE)),
    Route("DELETE", "/contexts/{context}", Api.delete_context, is_read=False),
    Route("GET", "/v1/metadata/id", Api.about, is_read=False),
    Route("GET", "/v1/metadata/version", Api.about),
    Route("GET", "/v1/metadata/deployment", Api.about),
    Route("GET", "/_health", Api.about, is_read=False),
    Route("GET", "/master_available", Api.about, is_read=False),
)

LATER: Final = ("exporters", "associations", "associations:batch", "dek-registry", "catalog")
"""What Confluent's registry has under these and ours has not yet."""


def _tree(routes: Iterable[Route]) -> dict[str | None, Any]:
    """Segments to segments; `{}` takes any, and under None are the methods."""
    tree: dict[str | None, Any] = {}
    for route in routes:
        node = tree
        for part in route.path.strip("/").split("/"):
            node = node.setdefault("{}" if part.startswith("{") else part, {})
        node.setdefault(None, {})[route.method] = route
    return tree


def answer_bytes(answer: Answer) -> bytes:
    """The body of a reply."""
    return answer.body if isinstance(answer, Raw) else b"" if isinstance(answer, NoContent) else json_bytes(answer)
