"""Which of the limits that operators have set applies to a user and a client id (KIP-55).

Limits of one kind are looked for in this order, and the first that is found counts:

1. of this user with this client id      4. of any user with this client id      7. of this client id
2. of this user with any client id       5. of any user with any client id       8. of any client id
3. of this user                          6. of any user

A limit for any user, or any client id, is one for each of them and not for all together. Clients share a limit if they
are the same in all that it names: a limit of a user is for all its client ids together.

A client without a client id has no limit that names one, as in Apache Kafka.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.machines.metadata.image.quotas_image import QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_UNNAMED: Final = ""


class Sharers(NamedTuple):
    """The clients that share a limit: of one user, of one client id, or of both. An empty name is all."""

    user: str
    client_id: str


class Limit(NamedTuple):
    per_second: float
    sharers: Sharers


class QuotaTable:
    """The limits of one kind: `producer_byte_rate`, `request_percentage`, …; empty if none is set."""

    def __init__(self, key: str, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self.key = key
        self._by_names: dict[tuple[object, object], float] = {}
        for entity, values in quotas.items():
            names = dict(entity)
            if key in values and IP not in names:
                self._by_names[names.get(USER, _ABSENT), names.get(CLIENT_ID, _ABSENT)] = values[key]

    def __bool__(self) -> bool:
        return bool(self._by_names)

    def find(self, user: str, client_id: str) -> Limit | None:
        """What applies to a client; None if nothing does."""
        by_names = self._by_names
        for names, sharers in _in_order(user, client_id):
            if names in by_names:
                if not client_id and names[1] is not _ABSENT:
                    break
                return Limit(by_names[names], sharers)
        else:
            return None
        per_second = by_names.get((user, _ABSENT), by_names.get((None, _ABSENT)))
        return Limit(per_second, Sharers(user, _UNNAMED)) if per_second is not None and user else None


class _Absent:
    """That an entity does not name a user, or a client id; None is the default for those not named."""


_ABSENT: Final = _Absent()


def _in_order(user: str, client_id: str) -> Iterable[tuple[tuple[object, object], Sharers]]:
    of_both, of_user, of_client = Sharers(user, client_id), Sharers(user, _UNNAMED), Sharers(_UNNAMED, client_id)
    return (
        ((user, client_id), of_both),
        ((user, None), of_both),
        ((user, _ABSENT), of_user),
        ((None, client_id), of_both),
        ((None, None), of_both),
        ((None, _ABSENT), of_user),
        ((_ABSENT, client_id), of_client),
        ((_ABSENT, None), of_client),
    )
