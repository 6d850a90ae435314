"""Client quotas: how much a user, a client id or an address may do (KIP-546)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from ottla.client.admin.asking import Asking, never
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.errors import error_for
from ottla.wire import messages

_EXACT, _DEFAULT, _ANY = 0, 1, 2


class AnyName(Enum):
    """In a filter: the entity has a part of this type, whatever its name."""

    ANY_NAME = "any"


ANY_NAME: Final = AnyName.ANY_NAME


class QuotaEntity(NamedTuple):
    """Whom a quota is for: parts of a type (`user`, `client-id`, `ip`) and a name, which is None for the default."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, **names: str | None) -> "QuotaEntity":
        """`QuotaEntity.of(user="alice", client_id=None)`: any client of alice's that has no quota of its own."""
        return cls(tuple(sorted((type.replace("_", "-"), name) for type, name in names.items())))

    def __str__(self) -> str:
        return ", ".join(f"{type} {'<default>' if name is None else name}" for type, name in self.parts)


async def describe_client_quotas(
    asking: Asking,
    filter: Mapping[str, str | AnyName | None] | None = None,
    *,
    strict: bool = False,
    timeout: float | None = None,
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas whose entity matches: by type a name, None for the default, or `ANY_NAME`; without a filter, all.

    With `strict`, the entity has no parts but those of the filter.
    """
    component = messages.DescribeClientQuotasRequest.ComponentData
    components = []
    for type, name in (filter or {}).items():
        match name:
            case AnyName():
                components.append(component(entity_type=type, match_type=_ANY, match=None))
            case None:
                components.append(component(entity_type=type, match_type=_DEFAULT, match=None))
            case _:
                components.append(component(entity_type=type, match_type=_EXACT, match=name))
    request = messages.DescribeClientQuotasRequest(components=components, strict=strict)
    response = await asking.any(request, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    return {
        QuotaEntity(tuple(sorted((one.entity_type, one.entity_name) for one in entry.entity))): {
            one.key: one.value for one in entry.values
        }
        for entry in response.entries or ()
    }


async def alter_client_quotas(
    asking: Asking,
    changes: Mapping[QuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Results[QuotaEntity, None]:
    """Sets quotas by name, such as `producer_byte_rate`; None takes one away."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[QuotaEntity]) -> dict[QuotaEntity, Outcome[None]]:
        request = messages.AlterClientQuotasRequest
        made = request(
            entries=[
                request.EntryData(
                    entity=[request.EntityData(entity_type=type, entity_name=name) for type, name in entity.parts],
                    ops=[
                        request.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                        for key, value in changes[entity].items()
                    ],
                )
                for entity in left
            ],
            validate_only=validate_only,
        )
        response = await asking.controller(made, deadline)
        answer = {
            frozenset((one.entity_type, one.entity_name) for one in entry.entity): entry for entry in response.entries
        }
        return {entity: failure(entry) for entity in left if (entry := answer.get(frozenset(entity.parts))) is not None}

    return await asking.each("alter_client_quotas", changes, attempt, deadline, may_pass=never)
