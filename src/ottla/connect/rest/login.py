"""Who asks the REST interface, and what they may do: passwords, tokens, certificates, as the schema registry has them.

Without `authentication.method` everybody who reaches a listener may do everything, as with Kafka Connect; that is why
the default listener is loopback. With it, a request shows a name and password (`BASIC`, users in a file with hashed
passwords), a token (`BEARER`, a JWT signed with a key of `ottla.connect.jwks.url`), or comes over a connection whose
client has shown a certificate (`ssl.client.auth`). `/health` is for probes, and asks nobody.

If the file has permissions, they count: `Read` is what changes nothing (GET), `Write` is everything, on patterns of
`Connector:NAME` and of `Worker:` (lists, plug-ins, loggers, metrics). Without any, who has logged in may do everything.

A worker that passes a request on passes the login on with it, so the leader checks it again.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ottla.client.promise import Promise
from ottla.config.bounds import Items, OneOf
from ottla.config.parse import ConfigError
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, List, Setting, Text
from ottla.connect.options import InvalidOption, read_options
from ottla.connect.worker.refusals import Refused
from ottla.registry.access import EVERYTHING, Access, Right
from ottla.registry.refusals import Refused as RegistryRefused
from ottla.registry.security import AuthFile, FileSecurity, RegistryGate, WrongAuthFile
from ottla.runtime.http.http_server import Caller
from ottla.runtime.world import World
from ottla.security.sasl.jwt import Expected, FindKey
from ottla.wire.http import HttpRequest

AUTH_FILE: Final = "ottla.connect.auth.file"
JWKS_URL: Final = "ottla.connect.jwks.url"
ROWS: Final[tuple[Setting, ...]] = (
    Text(
        "authentication.method",
        "NONE",
        OneOf(("NONE", "BASIC", "BEARER"), any_case=True),
        HIGH,
        "How clients of the REST interface say who they are: with a name and password, or with a token (JWT). "
        "Certificates count besides, where `ssl.client.auth` asks for them.",
        acted_on=True,
    ),
    Text("authentication.realm", "connect", ANY, LOW, "The realm in the challenge for a password.", acted_on=True),
    Text(
        AUTH_FILE,
        "",
        ANY,
        HIGH,
        "File with users, hashed passwords and rights, in the form of the schema registry's. It is read again when it "
        "changes.",
        acted_on=True,
    ),
    List(
        "ottla.connect.super.users",
        (),
        Items(),
        MEDIUM,
        "Principals that may do everything, as `User:name`; the certificates of other workers are some.",
        acted_on=True,
    ),
    Text(JWKS_URL, "", ANY, MEDIUM, "Where the keys of tokens are: an https, http or file URL.", acted_on=True),
    Text("ottla.connect.jwt.issuer", "", ANY, MEDIUM, "What a token's `iss` must be, if it is given.", acted_on=True),
    List("ottla.connect.jwt.audience", (), Items(), MEDIUM, "What a token's `aud` must have one of.", acted_on=True),
    Text(
        "ottla.connect.jwt.principal.claim",
        "sub",
        ANY,
        LOW,
        "Which claim of a token names the principal.",
        acted_on=True,
    ),
)
_READS: Final = ("GET", "HEAD", "OPTIONS")
_OPEN: Final = "/health"
_KAFKAS: Final = "BasicAuthSecurityRestExtension"


class Login:
    """What stands before the API."""

    def __init__(self, gate: RegistryGate) -> None:
        self._gate = gate

    def challenge(self) -> list[tuple[str, str]]:
        """Headers of a 401."""
        return self._gate.challenge()

    async def admit(self, request: HttpRequest, caller: Caller, connector: str | None) -> None:
        """`connector` is the one whose path it is. Raises `Refused`: 401, or 403."""
        if request.path == _OPEN and request.method in _READS:
            return
        try:
            admitted = self._gate.admit(request, caller)
            access = await admitted if isinstance(admitted, Promise) else admitted
        except RegistryRefused as refused:
            raise Refused(refused.status, refused.message) from None
        right = Right.READ if request.method in _READS else Right.WRITE
        if not (access.may_configure(right) if connector is None else access.may(right, connector)):
            raise Refused(403, "User is denied operation on this resource.")


class _Rights:
    """Of the file, as it is now."""

    def __init__(self, file: FileSecurity) -> None:
        self._file = file

    def of(self, principal: str, host: str) -> Access:
        known = self._file.file
        return _FileAccess(known, principal.removeprefix("User:")) if known.permissions else EVERYTHING


class _FileAccess:
    def __init__(self, file: AuthFile, username: str) -> None:
        self._permissions = [one for one in file.permissions if one.username == username]

    def may(self, right: Right, subject: str) -> bool:
        return self._has(right, f"Connector:{subject}")

    def may_configure(self, right: Right) -> bool:
        return self._has(right, "Worker:")

    def _has(self, right: Right, resource: str) -> bool:
        return any(
            (right is Right.READ or one.right is Right.WRITE) and one.resource.fullmatch(resource) is not None
            for one in self._permissions
        )


def make_login(
    world: World, properties: Mapping[str, str], asks_for_certificates: bool, make_keys: Callable[[str], FindKey]
) -> Login | None:
    """None where everybody may do everything. Raises `InvalidOption` that names the setting."""
    values = read_options(ROWS, properties)
    method = values.text("authentication.method").upper()
    if method == "NONE" and _KAFKAS in properties.get("rest.extension.classes", ""):
        raise InvalidOption(
            f"rest.extension.classes names {_KAFKAS}, which is a class of Java's: set authentication.method=BASIC and "
            f"{AUTH_FILE} for the same (docs/connect/worker.md), so that the REST interface is not open to everybody"
        )
    if method == "NONE" and not asks_for_certificates:
        return None
    path, url = values.text(AUTH_FILE), values.text(JWKS_URL)
    if method == "BASIC" and not path:
        raise InvalidOption(f"authentication.method=BASIC needs {AUTH_FILE}: the file with users and hashed passwords")
    if method == "BEARER" and not url:
        raise InvalidOption(f"authentication.method=BEARER needs {JWKS_URL}: the keys of who makes tokens")
    try:
        file = FileSecurity(world, path) if path else None
    except (OSError, WrongAuthFile) as problem:
        raise InvalidOption(f"{AUTH_FILE}={path}: {problem}") from None
    try:
        find_key = make_keys(url) if method == "BEARER" else None
    except (ConfigError, ValueError):
        raise InvalidOption(f"{JWKS_URL}={url}: it must be a URL with https, http or file") from None
    gate = RegistryGate(
        world,
        method=method,
        realm=values.text("authentication.realm"),
        passwords=file,
        rights=_Rights(file) if file is not None else None,
        super_users=values.list("ottla.connect.super.users"),
        find_key=find_key,
        expected=Expected(
            issuer=values.text("ottla.connect.jwt.issuer") or None,
            audience=values.list("ottla.connect.jwt.audience"),
            name_claim=values.text("ottla.connect.jwt.principal.claim"),
        ),
    )
    if file is not None:
        file.on_changed = gate.forget
    return Login(gate)
