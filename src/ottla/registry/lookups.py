"""Whether a schema is registered under a subject already: asked by clients, and before anything is registered."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.registry.decisions import (
    NewSchema,
    candidates,
    find_same,
    may_be_same,
    schema_text,
    validates_fields,
    with_defaults,
)
from ottla.registry.entities import schema_digest
from ottla.registry.refusals import Refused
from ottla.registry.state import LATEST, State, Version, Which
from ottla.registry.texts import Texts


async def look_up(
    state: State,
    texts: Texts,
    subject: str,
    schema: NewSchema,
    *,
    normalize: bool,
    deleted: bool,
    fields_default: bool,
) -> Version | None:
    """The version that the schema is; also if it is one with the metadata and rules of the latest. Raises `Refused`."""
    config = state.config_in_scope(subject)
    found = await look_up_once(
        state, texts, subject, schema, config, normalize=normalize, deleted=deleted, fields_default=fields_default
    )
    if found is not None:
        return found
    latest = state.version(subject, LATEST)
    if latest is None:
        return None
    populated = with_defaults(config, schema, latest, None)
    if populated == schema:
        return None
    return await look_up_once(
        state, texts, subject, populated, config, normalize=normalize, deleted=deleted, fields_default=fields_default
    )


async def look_up_anywhere(
    state: State,
    texts: Texts,
    subject: str,
    schema: NewSchema,
    *,
    normalize: bool,
    deleted: bool,
    fields_default: bool,
    may_read: Callable[[str], bool] = lambda name: True,
) -> Version | None:
    """The same, and for a subject without a context also in the other contexts, as far as they may be read."""
    first = True
    for name in [name for name in state.names_in_contexts(subject) if may_read(name)]:
        try:
            found = await look_up(
                state, texts, name, schema, normalize=normalize, deleted=deleted, fields_default=fields_default
            )
        except Refused:
            if first:
                raise
            continue
        if found is not None:
            return found
        first = False
    return None


async def look_up_once(
    state: State,
    texts: Texts,
    subject: str,
    schema: NewSchema,
    config: Mapping[str, Any],
    *,
    normalize: bool,
    deleted: bool,
    fields_default: bool,
    latest_only: bool = False,
) -> Version | None:
    if not schema.text.strip():
        return None
    imports = state.mode_in_scope(subject) in ("IMPORT", "FORWARD")
    strict = None if imports else validates_fields(config, fields_default)
    given = schema_text(state, subject, schema, normalize=normalize, strict=strict)
    understood = await texts.understand(given)
    schema = schema._replace(text=understood.text, references=given.references)
    if not latest_only:
        found = by_digest(state, subject, schema, deleted=deleted)
        if found is not None:
            return found
    if latest_only:
        latest = state.version(subject, LATEST)
        versions = [] if latest is None else [latest]
    else:
        versions = list(reversed(state.versions(subject, Which.ALL if deleted else Which.LIVE)))
    looked_at = candidates(state, may_be_same(schema, versions))
    if not looked_at:
        return None
    return await texts.on_worker(lambda: find_same(texts, understood.parsed, schema, -1, looked_at))


def by_digest(state: State, subject: str, schema: NewSchema, *, deleted: bool) -> Version | None:
    """`schema` has its canonical text."""
    digest = schema_digest(schema.text, schema.references, schema.metadata, schema.rules)
    known = state.by_digest(subject, digest)
    number = None if known is None else known[1].get(subject)
    return None if number is None else state.version(subject, number, deleted=deleted)
