"""Who asks, and what they may do: passwords, tokens and certificates; rights from a file or from the cluster's ACLs.

Theory of operation. A request shows a name and password (basic), a token (bearer), or came over a connection whose
client has shown a certificate. From that comes a principal, `User:name`, and from the principal what it may do.

Passwords are in Karapace's file, hashed, or the cluster's: then they are tried by logging in there (SCRAM or PLAIN). To
hash takes milliseconds, and to log in a few round trips, so neither is done on the loop, and one that was right is
remembered for a while, as a keyed digest. One that was wrong is answered late.

Rights in the file are Karapace's: a user, Read or Write, and a pattern of `Subject:name` or `Config:`. By the cluster's
ACLs a subject is its topic (`orders-value` is `orders`): Read on the topic is reading, Write is writing; what is global
is Describe and Alter on the cluster.
"""

import binascii
import hashlib
import json
import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hmac import compare_digest
from hmac import new as keyed
from typing import Final, NamedTuple, Protocol

from ottla.base.errors import OttlaError
from ottla.client.admin.access.acls import describe_acls
from ottla.client.admin.asking import Asking
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, SaslAuthenticationFailed
from ottla.client.promise import Promise, spawn
from ottla.client.settings import read_settings
from ottla.client.world import ClientWorld
from ottla.config.scopes import Scope
from ottla.registry.access import EVERYTHING, Access, Right
from ottla.registry.refusals import forbidden, not_authenticated
from ottla.registry.settings import RegistrySettings
from ottla.registry.subjects import read_name
from ottla.runtime.http.http_server import Caller
from ottla.runtime.world import World
from ottla.security.acls.authorizer import Authorizer
from ottla.security.acls.bindings import AclBinding
from ottla.security.api_access import ANONYMOUS
from ottla.security.sasl.jwt import Expected, FindKey, WrongToken, check_signed
from ottla.wire.acls import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.http import HttpRequest

_log = logging.getLogger(__name__)

_LOOK_S: Final = 2.0
_ACLS_S: Final = 10.0
_REMEMBERED_S: Final = 300.0
_MOST_REMEMBERED: Final = 10_000
_WRONG_S: Final = 0.2
_MOST_LOGINS: Final = 32
_LOGIN_MS: Final = 10_000
_ITERATIONS: Final = 5_000
_SUFFIXES: Final = ("-value", "-key")


class WrongAuthFile(OttlaError):
    """The file with users and rights cannot be used."""


class User(NamedTuple):
    algorithm: str
    salt: str
    password_hash: str


class Permission(NamedTuple):
    username: str
    right: Right
    resource: "re.Pattern[str]"


class AuthFile(NamedTuple):
    """Karapace's `registry_authfile`, read."""

    users: Mapping[str, User]
    permissions: tuple[Permission, ...]


def read_auth_file(content: bytes) -> AuthFile:
    """Raises `WrongAuthFile`."""
    try:
        found = json.loads(content)
        users = {
            str(one["username"]): User(str(one["algorithm"]), str(one["salt"]), str(one["password_hash"]))
            for one in found["users"]
        }
        permissions = tuple(
            Permission(str(one["username"]), Right(one["operation"]), re.compile(str(one["resource"])))
            for one in found.get("permissions", ())
        )
    except (ValueError, KeyError, TypeError, re.error) as problem:
        raise WrongAuthFile(f"the file with users cannot be read: {problem!r}") from None
    for name, user in users.items():
        if user.algorithm not in _HASHES:
            known = ", ".join(_HASHES)
            raise WrongAuthFile(f"the user {name} has the algorithm {user.algorithm!r}; there are {known}")
    return AuthFile(users, permissions)


def _pbkdf2(algorithm: str) -> Callable[[str, str], bytes]:
    return lambda salt, password: hashlib.pbkdf2_hmac(algorithm, password.encode(), salt.encode(), _ITERATIONS)


def _scrypt(salt: str, password: str) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt.encode(), n=16_384, r=8, p=1)


_HASHES: Final[Mapping[str, Callable[[str, str], bytes]]] = {
    "sha1": _pbkdf2("sha1"),
    "sha256": _pbkdf2("sha256"),
    "sha512": _pbkdf2("sha512"),
    "scrypt": _scrypt,
}


def hash_password(algorithm: str, salt: str, password: str) -> str:
    """As Karapace's file has it."""
    return b64encode(_HASHES[algorithm](salt, password)).decode()


class Rights(Protocol):
    """Where rights come from."""

    def of(self, principal: str, host: str) -> Access: ...


class Passwords(Protocol):
    """Where passwords are checked."""

    def check(self, username: str, password: str) -> Promise[bool]: ...


class FileSecurity:
    """Users and rights of a file, which is read again when it changes. Making one raises `WrongAuthFile`, `OSError`."""

    def __init__(self, world: World, path: str) -> None:
        self._world = world
        self._path = path
        self._content = _read(path)
        self.file = read_auth_file(self._content)
        self.on_changed: Callable[[], None] = lambda: None
        self._logged = ""
        self._secret = world.entropy.randbytes(32)
        world.timers.every(_LOOK_S, self._look)

    def _look(self) -> None:
        self._world.workers.run(lambda: _read(self._path), self._on_content, self._on_problem, key="registry users")

    def _on_content(self, content: bytes) -> None:
        if content == self._content:
            return
        try:
            self.file = read_auth_file(content)
        except WrongAuthFile as problem:
            self._on_problem(problem)
            return
        self._content, self._logged = content, ""
        _log.info("read the users and rights of %s again", self._path)
        self.on_changed()

    def _on_problem(self, problem: Exception) -> None:
        if str(problem) != self._logged:
            self._logged = str(problem)
            _log.warning("the users and rights of %s stay as they were: %s", self._path, problem)

    # Passwords

    def check(self, username: str, password: str) -> Promise[bool]:
        """A name that is not there takes as long as one that is: it has the algorithm of one of the users, always the
        same one."""
        user = self.file.users.get(username)
        hashed = user or User(self._algorithm_of_nobody(username), "nobody", "")
        outcome: Promise[bool] = Promise()
        self._world.workers.run(
            lambda: hash_password(hashed.algorithm, hashed.salt, password),
            lambda found: outcome.resolve(
                user is not None and compare_digest(found.encode(), user.password_hash.encode())
            ),
            outcome.reject,
        )
        return outcome

    def _algorithm_of_nobody(self, username: str) -> str:
        known = [user.algorithm for user in self.file.users.values()] or ["sha512"]
        return known[int.from_bytes(keyed(self._secret, username.encode(), "sha256").digest()) % len(known)]

    # Rights

    def of(self, principal: str, host: str) -> Access:
        return _FileAccess(self, principal.removeprefix("User:"))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class _FileAccess:
    def __init__(self, security: FileSecurity, username: str) -> None:
        self._security = security
        self._username = username

    def may(self, right: Right, subject: str) -> bool:
        return self._has(right, f"Subject:{subject}")

    def may_configure(self, right: Right) -> bool:
        return self._has(right, "Config:")

    def _has(self, right: Right, resource: str) -> bool:
        return any(
            one.username == self._username
            and (right is Right.READ or one.right is Right.WRITE)
            and one.resource.match(resource) is not None
            for one in self._security.file.permissions
        )


class ClusterPasswords:
    """Names and passwords of the cluster: each is tried by logging in there."""

    def __init__(self, world: ClientWorld, settings: RegistrySettings) -> None:
        self._world = world
        self._settings = settings
        self._under_way = 0

    def check(self, username: str, password: str) -> Promise[bool]:
        if self._under_way >= _MOST_LOGINS:
            return Promise.rejected(forbidden("Too many logins are under way"))
        self._under_way += 1
        outcome = spawn(self._log_in(username, password))
        outcome.on_done(self._on_done)
        return outcome

    def _on_done(self, _: Promise[bool]) -> None:
        self._under_way -= 1

    async def _log_in(self, username: str, password: str) -> bool:
        mechanism = str(self._settings.client.get("sasl.mechanism", "SCRAM-SHA-256")).upper()
        if mechanism != "PLAIN" and not mechanism.startswith("SCRAM-"):
            mechanism = "SCRAM-SHA-256"
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = (
            f"org.apache.kafka.common.security.{module} required "
            f'username="{_quoted(username)}" password="{_quoted(password)}";'
        )
        given: dict[str, object] = {
            key: value for key, value in self._settings.client.items() if key.startswith(("ssl.", "security."))
        }
        protocol = str(given.get("security.protocol", "SASL_PLAINTEXT")).upper()
        given["security.protocol"] = "SASL_SSL" if "SSL" in protocol else "SASL_PLAINTEXT"
        given |= {
            "bootstrap.servers": list(self._settings.values.list("kafkastore.bootstrap.servers")),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": login,
        }
        cluster = Cluster(self._world, read_settings(Scope.ADMIN, given))
        try:
            await self._world.within(cluster.refresh(), _LOGIN_MS, cluster.no_metadata)
        except SaslAuthenticationFailed:
            return False
        except KafkaError as problem:
            _log.warning("cannot check a password with the cluster: %s", problem)
            raise not_authenticated() from None
        finally:
            cluster.close()
        return True


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class ClusterRights:
    """The cluster's ACLs, asked for again and again. Until they are known, only super users may do something."""

    def __init__(self, world: ClientWorld, cluster: Cluster, super_users: tuple[str, ...]) -> None:
        self._asking = Asking(cluster)
        self._authorizer = Authorizer(super_users=super_users, is_ready=False)
        self._world = world
        self._logged = ""
        world.timers.every(_ACLS_S, self._look, first_s=0.0)

    def _look(self) -> None:
        spawn(self._ask())

    async def _ask(self) -> None:
        try:
            found = await describe_acls(self._asking, timeout=_ACLS_S)
        except KafkaError as problem:
            if str(problem) != self._logged:
                self._logged = str(problem)
                _log.warning("cannot read the cluster's ACLs: %s", problem)
            return
        self._logged = ""
        rules = {
            place: AclBinding(
                one.resource_type,
                one.resource_name,
                one.pattern_type,
                one.principal,
                one.host,
                one.operation,
                one.permission,
            )
            for place, one in enumerate(found)
        }
        self._authorizer.load(rules)

    def of(self, principal: str, host: str) -> Access:
        return _ClusterAccess(self._authorizer, principal, host)


class _ClusterAccess:
    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host

    def may(self, right: Right, subject: str) -> bool:
        operation = AclOperation.READ if right is Right.READ else AclOperation.WRITE
        return self._allows(operation, AclResource.TOPIC, topic_of(subject)) or (
            right is Right.READ and self._allows(AclOperation.WRITE, AclResource.TOPIC, topic_of(subject))
        )

    def may_configure(self, right: Right) -> bool:
        operation = AclOperation.DESCRIBE if right is Right.READ else AclOperation.ALTER
        return self._allows(operation, AclResource.CLUSTER, CLUSTER_NAME)

    def _allows(self, operation: AclOperation, resource: AclResource, name: str) -> bool:
        return self._authorizer.allows(self._principal, self._host, operation, resource, name)


def topic_of(subject: str) -> str:
    """The topic that a subject is of, by Confluent's TopicNameStrategy; else a topic of the subject's name."""
    name = read_name(subject).subject
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


class _EverythingRights:
    def of(self, principal: str, host: str) -> Access:
        return EVERYTHING


class RegistryGate:
    """What stands before the API. See `front.Gate`."""

    def __init__(
        self,
        world: World,
        *,
        method: str,
        realm: str,
        passwords: Passwords | None = None,
        rights: Rights | None = None,
        super_users: tuple[str, ...] = (),
        find_key: FindKey | None = None,
        expected: Expected | None = None,
    ) -> None:
        self._world = world
        self._method = method
        self._realm = realm
        self._passwords = passwords
        self._rights = rights or _EverythingRights()
        self._super_users = frozenset(super_users)
        self._find_key = find_key
        self._expected = expected or Expected()
        self._secret = world.entropy.randbytes(32)
        self._remembered: dict[tuple[str, bytes], float] = {}

    def forget(self) -> None:
        """What was remembered of passwords may no longer be so, nor what is being checked now."""
        self._remembered = {}

    def challenge(self) -> list[tuple[str, str]]:
        if self._method == "BASIC":
            return [("WWW-Authenticate", f'Basic realm="{self._realm}", charset="UTF-8"')]
        if self._method == "BEARER":
            return [("WWW-Authenticate", f'Bearer realm="{self._realm}"')]
        return []

    def admit(self, request: HttpRequest, caller: Caller) -> Access | Promise[Access]:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        scheme, shown = scheme.lower(), shown.strip()
        if scheme == "basic" and self._method == "BASIC":
            return self._admit_password(shown, caller)
        if scheme == "bearer" and self._method == "BEARER":
            return self._admit_token(shown, caller)
        if caller.principal is not None and caller.principal != ANONYMOUS:
            return self._access(caller.principal, caller)
        raise not_authenticated()

    def _access(self, principal: str, caller: Caller) -> Access:
        return EVERYTHING if principal in self._super_users else self._rights.of(principal, caller.host)

    def _admit_password(self, shown: str, caller: Caller) -> Access | Promise[Access]:
        try:
            username, colon, password = b64decode(shown, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            raise not_authenticated() from None
        if not colon or not username:
            raise not_authenticated()
        key = (username, keyed(self._secret, password.encode(), "sha256").digest())
        until_s = self._remembered.get(key)
        if until_s is not None and self._world.timers.now_s() < until_s:
            return self._access(f"User:{username}", caller)
        return spawn(self._check_password(username, password, key, caller))

    async def _check_password(self, username: str, password: str, key: tuple[str, bytes], caller: Caller) -> Access:
        assert self._passwords is not None, "passwords are checked somewhere"
        remembered = self._remembered
        if not await self._passwords.check(username, password):
            late: Promise[None] = Promise()
            self._world.timers.after(_WRONG_S, lambda: late.resolve(None))
            await late
            raise not_authenticated()
        if len(remembered) >= _MOST_REMEMBERED:
            remembered.clear()
        remembered[key] = self._world.timers.now_s() + _REMEMBERED_S
        return self._access(f"User:{username}", caller)

    def _admit_token(self, shown: str, caller: Caller) -> Access:
        assert self._find_key is not None, "tokens are checked by keys"
        try:
            token = check_signed(shown, self._find_key, self._expected, self._world.clock.now_ms())
        except WrongToken as problem:
            _log.debug("a token was refused: %s", problem)
            raise not_authenticated() from None
        return self._access(f"User:{token.name}", caller)


def make_gate(
    world: World,
    client_world: ClientWorld,
    settings: RegistrySettings,
    cluster: Cluster,
    make_keys: Callable[[str], FindKey] | None,
) -> RegistryGate | None:
    """None where everybody may do everything. Raises `WrongAuthFile`, `OSError` or `ValueError`."""
    values = settings.values
    method = values.text("authentication.method").upper()
    asks_for_certificates = values.text("ssl.client.auth") != "none"
    if method == "NONE" and not asks_for_certificates:
        return None
    path = values.text("ottla.registry.auth.file")
    users, rights_from = values.text("ottla.registry.users"), values.text("ottla.registry.rights")
    super_users = values.list("ottla.registry.super.users")
    file = FileSecurity(world, path) if path else None
    passwords: Passwords | None = None
    if method == "BASIC":
        if users == "kafka":
            passwords = ClusterPasswords(client_world, settings)
        elif file is not None:
            passwords = file
        else:
            raise ValueError(
                "authentication.method=BASIC needs ottla.registry.auth.file, or ottla.registry.users=kafka"
            )
    rights: Rights
    if rights_from == "kafka":
        rights = ClusterRights(client_world, cluster, super_users)
    elif rights_from == "file" and file is not None:
        rights = file
    else:
        rights = _EverythingRights()
    find_key: FindKey | None = None
    if method == "BEARER":
        url = values.text("ottla.registry.jwks.url")
        if not url or make_keys is None:
            raise ValueError("authentication.method=BEARER needs ottla.registry.jwks.url: the keys of who makes tokens")
        find_key = make_keys(url)
    gate = RegistryGate(
        world,
        method=method,
        realm=values.text("authentication.realm"),
        passwords=passwords,
        rights=rights,
        super_users=super_users,
        find_key=find_key,
        expected=Expected(
            issuer=values.text("ottla.registry.jwt.issuer") or None,
            audience=values.list("ottla.registry.jwt.audience"),
            name_claim=values.text("ottla.registry.jwt.principal.claim"),
        ),
    )
    if file is not None:
        file.on_changed = gate.forget
    return gate
