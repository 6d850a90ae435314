"""DescribeClientQuotas 0-1: limits by user, client id and address, as stored (KIP-546).

They are kept in the metadata log. Each node holds its clients to them: see `ottla.broker.quotas`.
"""

from collections.abc import Callable, Iterable
from typing import Final

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.machines.metadata.image.quotas_image import QuotaEntity
from ottla.machines.metadata.refusal import Refusal
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

EXACTLY: Final = 0
DEFAULT: Final = 1
ANY: Final = 2
"""How a component of a filter matches an entity's name: as given, the default's, or whatever it is."""

Component = DescribeClientQuotasRequest.ComponentData
Matches = Callable[[str | None], bool]


def handle_describe_client_quotas(
    metadata: ClusterMetadata, context: RequestContext, request: DescribeClientQuotasRequest, respond: Respond
) -> None:
    refusal = _refusal(request.components)
    if refusal is not None:
        respond(DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message, entries=None))
        return
    filters = {component.entity_type: _matcher(component) for component in request.components}
    respond(
        DescribeClientQuotasResponse(
            error_message=None,
            entries=[
                _entry(entity, values)
                for entity, values in metadata.image.quotas.by_entity.items()
                if _is_asked_for(dict(entity), filters, strict=request.strict)
            ],
        )
    )


def _is_asked_for(entity: dict[str, str | None], filters: dict[str, Matches], *, strict: bool) -> bool:
    """Every component matches a part of the entity; a strict filter leaves no other part of it."""
    if strict and len(entity) != len(filters):
        return False
    return all(type_ in entity and matches(entity[type_]) for type_, matches in filters.items())


def _matcher(component: Component) -> Matches:
    if component.match_type == ANY:
        return lambda _name: True
    wanted = component.match if component.match_type == EXACTLY else None
    return lambda name: name == wanted


def _refusal(components: Iterable[Component]) -> Refusal | None:
    seen: set[str] = set()
    for component in components:
        type_ = component.entity_type
        if not type_:
            return _invalid("A filter needs an entity type.")
        if type_ in seen:
            return _invalid(f"A filter has the entity type {type_} more than once.")
        if type_ not in (USER, CLIENT_ID, IP):
            return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {type_}")
        if component.match_type not in (EXACTLY, DEFAULT, ANY):
            return _invalid(f"Unknown match type {component.match_type}")
        if (component.match is None) == (component.match_type == EXACTLY):
            return _invalid("A name to match goes with an exact match, and with no other.")
        seen.add(type_)
    if IP in seen and len(seen) > 1:
        return _invalid("Quotas of addresses are apart from those of users and client ids.")
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _entry(entity: QuotaEntity, values: dict[str, float]) -> DescribeClientQuotasResponse.EntryData:
    return DescribeClientQuotasResponse.EntryData(
        entity=[
            DescribeClientQuotasResponse.EntityData(entity_type=type_, entity_name=name)
            for type_, name in sorted(entity, key=lambda part: part[0])
        ],
        values=[DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in values.items()],
    )
