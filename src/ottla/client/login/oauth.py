"""The login by OAUTHBEARER that settings and JAAS options ask for. A setting wins over the option of its meaning."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ottla.client.login.assertions import AssertionClaims, FileAssertion, SignedAssertion
from ottla.client.login.token_login import TokenLogin, TokenSource
from ottla.client.login.token_sources import (
    ClientAssertion,
    ClientSecret,
    Endpoint,
    EndpointSource,
    FileSource,
    JwtBearer,
    MakeAssertion,
    UnsignedSource,
)
from ottla.client.world import ClientWorld
from ottla.config.parse import ConfigError, Problem, Values
from ottla.config.scopes import Scope
from ottla.config.scopes import settings as rows_of
from ottla.security.sasl.allowed_urls import AllowedResources
from ottla.security.sasl.jaas import JaasEntry

if TYPE_CHECKING:
    from ssl import SSLContext

_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_ASSERTION_FILE: Final = "sasl.oauthbearer.assertion.file"
_ISSUER: Final = "sasl.oauthbearer.assertion.claim.iss"
_DEFAULT_TIMEOUT_S: Final = 30.0
"""Kafka's clients have no limit by default, and would wait for a dead provider for ever."""


def oauth_login(world: ClientWorld, settings: Values, entry: JaasEntry) -> TokenLogin:
    """Raises `ConfigError`."""
    extensions = _extensions(entry.options, "unsecuredLoginExtension_" if _is_unsigned(settings) else "extension_")
    return TokenLogin(world, settings, _source(world, settings, entry.options), extensions)


def _is_unsigned(settings: Values) -> bool:
    return settings.optional_text(_URL) is None


def _source(world: ClientWorld, settings: Values, options: Mapping[str, str]) -> TokenSource:
    url = settings.optional_text(_URL)
    if url is None:
        if not any(name.startswith("unsecuredLogin") for name in options):
            raise ConfigError((Problem(_URL, None, "given: the token endpoint of the provider, or file:///…"),))
        return UnsignedSource(options)
    allowed = AllowedResources.of(os.environ)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file") or (parts.scheme != "file" and not parts.hostname):
        raise ConfigError((Problem(_URL, url, "a URL that begins with https://, http:// or file://"),))
    allowed.check_url(_URL, url)
    retriever = settings.text("sasl.oauthbearer.jwt.retriever.class").rpartition(".")[2]
    if parts.scheme == "file":
        return FileSource(unquote(parts.path))
    endpoint = Endpoint(
        url,
        _seconds(settings, "sasl.login.connect.timeout.ms"),
        _seconds(settings, "sasl.login.read.timeout.ms"),
        _context(options) if parts.scheme == "https" else None,
    )
    scope = settings.optional_text("sasl.oauthbearer.scope") or options.get("scope")
    if retriever == "JwtBearerJwtRetriever":
        return EndpointSource(world.aside, endpoint, JwtBearer(_assertion(world, settings, allowed), scope))
    client_id = settings.optional_text("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId")
    if settings[_ASSERTION_FILE] or settings[_ISSUER]:
        grant = ClientAssertion(_assertion(world, settings, allowed), client_id, scope)
        return EndpointSource(world.aside, endpoint, grant)
    given = settings.secret("sasl.oauthbearer.client.credentials.client.secret")
    secret = options.get("clientSecret") if given is None else given.secret
    if not client_id or not secret:
        missing = "sasl.oauthbearer.client.credentials.client." + ("id" if not client_id else "secret")
        raise ConfigError((Problem(missing, None, "given, for the grant of client credentials"),))
    is_urlencoded = settings.flag("sasl.oauthbearer.header.urlencode")
    return EndpointSource(world.aside, endpoint, ClientSecret(client_id, secret, scope, is_urlencoded))


def _assertion(world: ClientWorld, settings: Values, allowed: AllowedResources) -> MakeAssertion:
    def file(setting: str) -> str | None:
        path = settings.optional_text(setting)
        if path is not None:
            allowed.check_file(setting, os.path.abspath(path))
        return path

    if made := file(_ASSERTION_FILE):
        return FileAssertion(made)
    key = "sasl.oauthbearer.assertion.private.key.file"
    key_file = file(key)
    if key_file is None:
        raise ConfigError((Problem(key, None, f"given, or {_ASSERTION_FILE}: what an assertion is signed with"),))
    fixed = {
        "aud": settings.optional_text("sasl.oauthbearer.assertion.claim.aud"),
        "iss": settings.optional_text(_ISSUER),
        "sub": settings.optional_text("sasl.oauthbearer.assertion.claim.sub"),
    }
    claims = AssertionClaims(
        {name: value for name, value in fixed.items() if value},
        settings.integer("sasl.oauthbearer.assertion.claim.exp.seconds"),
        settings.integer("sasl.oauthbearer.assertion.claim.nbf.seconds"),
        settings.flag("sasl.oauthbearer.assertion.claim.jti.include"),
    )
    passphrase = settings.secret("sasl.oauthbearer.assertion.private.key.passphrase")
    return SignedAssertion(
        settings.text("sasl.oauthbearer.assertion.algorithm"),
        key_file,
        None if passphrase is None else passphrase.secret,
        claims,
        file("sasl.oauthbearer.assertion.template.file"),
        world.entropy.randbytes,
    )


def _context(options: Mapping[str, str]) -> "SSLContext":
    """The provider's certificate is judged by the `ssl.` options of the login, as in Kafka, or by the system's CAs."""
    from ottla.security.tls.contexts import client_context

    rows = rows_of(Scope.ADMIN)
    given = {
        name: rows[name].parse(value) for name, value in options.items() if name.startswith("ssl.") and name in rows
    }
    return client_context(Values(given, rows))


def _extensions(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def _seconds(settings: Values, name: str) -> float:
    value = settings[name]
    return value / 1000 if isinstance(value, int) else _DEFAULT_TIMEOUT_S
