"""`kafka-delegation-tokens`: creates, renews, ends and describes delegation tokens."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.cli.acls.acl_rules import principal_of
from ottla.cli.failures import Terse
from ottla.cli.options.checks import run_program
from ottla.cli.options.reading import Given
from ottla.cli.sessions import admin_of
from ottla.cli.tokens.token_options import PROGRAM, check

if TYPE_CHECKING:
    from ottla.client.admin.access.tokens import DelegationToken
    from ottla.client.blocking.admin import Admin

_HEADER: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    action = _ACTIONS[check(given)]
    with admin_of(given) as admin:
        action(admin, given)
    return 0


def _create(admin: Admin, given: Given) -> None:
    renewers, longest_ms = _principals(given, "renewer-principal"), _period_ms(given, "max-life-time-period")
    print(f"Calling create token operation with renewers :{_list(renewers)} , max-life-time-period :{longest_ms}")
    owners = _principals(given, "owner-principal")
    token = admin.create_delegation_token(
        owner=owners[0] if owners else None, renewers=renewers, max_lifetime_ms=longest_ms
    )
    print(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


def _renew(admin: Admin, given: Given) -> None:
    hmac, period_ms = _hmac(given), _period_ms(given, "renew-time-period")
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}")
    expires_ms = admin.renew_delegation_token(_decoded(hmac), renew_period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expires_ms)}")


def _expire(admin: Admin, given: Given) -> None:
    hmac, period_ms = _hmac(given), _period_ms(given, "expiry-time-period")
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}")
    expires_ms = admin.expire_delegation_token(_decoded(hmac), expiry_period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expires_ms)}")


def _describe(admin: Admin, given: Given) -> None:
    owners = _principals(given, "owner-principal")
    if owners:
        print(f"Calling describe token operation for owners: {_list(owners)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_tokens(owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print(tokens)


def _print(tokens: Iterable[DelegationToken]) -> None:
    """A blank line stands before each row, as in Kafka's."""
    rows = [_HEADER]
    for token in tokens:
        issued, expires, ends = map(_date, (token.issued_ms, token.expires_ms, token.max_lifetime_ms))
        hmac = b64encode(token.hmac).decode()
        rows.append((token.token_id, hmac, token.owner, token.requester, _list(token.renewers), issued, expires, ends))
    for row in rows:
        print("\n" + " ".join(f"{cell:{width}}" for cell, width in zip(row, _WIDTHS, strict=True)))


def _principals(given: Given, option: str) -> list[str]:
    return [principal_of(text) for text in given.all(option)]


def _period_ms(given: Given, option: str) -> int:
    """The option may stand without its number, for all that the reader of the command line knows."""
    period_ms = given.get_integer(option)
    if period_ms is None:
        raise Terse(f"Option {option} requires a number of milliseconds, or -1")
    return period_ms


def _hmac(given: Given) -> str:
    hmac = given.get("hmac")
    if hmac is None:
        raise Terse("Option hmac requires an argument")
    return hmac


def _decoded(hmac: str) -> bytes:
    try:
        return b64decode(hmac, validate=True)
    except NotBase64 as problem:
        raise Terse(f"the HMAC of a token is written in base64: {problem}") from None


def _date(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(time_ms // 1000))


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


_ACTIONS: Final = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
