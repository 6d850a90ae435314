"""Which of the limits that operators have set applies to a user and a client id (KIP-55).

Limits of one kind are looked for in this order, and the first that is found counts:

1. of this user with this client id      4. of any user with this client id      7. of this client id
2. of this user with any client id       5. of any user with any client id       8. of any client id
3. of this user                          6. of any user

A limit for any user, or any client id, is one for each of them and not for all together. Clients share a limit if they
are the same in all that it names: a limit of a user is for all its client ids together.

A client without a client id has no limit that names one, as in Apache Kafka.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from ottla.machines.metadata.image.quotas_image import QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_UNNAMED: Final = ""


Quotas: TypeAlias = Mapping[QuotaEntity, Mapping[str, float]]
"""As the metadata has them: `QuotasImage.by_entity`."""


class Sharers(NamedTuple):
    """The clients that share a limit: of one user, of one client id, or of both. An empty name is all."""

    user: str
    client_id: str


class Limit(NamedTuple):
    per_second: float
    sharers: Sharers


def find_limit(quotas: Quotas, key: str, user: str, client_id: str) -> Limit | None:
    """What applies to a client of the limits with that key: `producer_byte_rate`, …; None if nothing does."""
    for entity, sharers in _in_order(user, client_id):
        values = quotas.get(entity)
        if values is not None and key in values:
            if client_id or (len(entity) == 1 and sharers.user):
                return Limit(values[key], sharers)
            return _of_user_alone(quotas, key, user)
    return None


def _of_user_alone(quotas: Quotas, key: str, user: str) -> Limit | None:
    for name in (user, None):
        values = quotas.get(frozenset({(USER, name)}))
        if values is not None and key in values:
            return Limit(values[key], Sharers(user, _UNNAMED))
    return None


def _in_order(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Sharers]]:
    of_both, of_user, of_client = Sharers(user, client_id), Sharers(user, _UNNAMED), Sharers(_UNNAMED, client_id)
    for user_name in (user, None):
        yield frozenset({(USER, user_name), (CLIENT_ID, client_id)}), of_both
        yield frozenset({(USER, user_name), (CLIENT_ID, None)}), of_both
        yield frozenset({(USER, user_name)}), of_user
    yield frozenset({(CLIENT_ID, client_id)}), of_client
    yield frozenset({(CLIENT_ID, None)}), of_client
