"""Kerberos principals, and the short names that Kafka's rules make of them: `sasl.kerberos.principal.to.local.rules`.

A rule is for principals with a number of components, and the first that applies counts:

    RULE:[1:$1@$0](.*@EAST)s/@.*//L     alice@EAST is alice: [COMPONENTS:FORMAT](WHICH)s/FROM/TO/g, then L or U
    RULE:[2:$1]                         kafka/node1@ANY is kafka
    DEFAULT                             the first component, of principals in the default realm

`$0` is the realm. WHICH has to match all that the format makes. A principal to which no rule applies has no name, and
is refused, as in Kafka. Patterns are matched in linear time, by RE2: a pattern that needs to look ahead or behind is
refused when the node starts. So is a rule that could only ever fail, which Kafka notices when a client comes.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.config.parse import ConfigError, Problem
from ottla.security.sasl.mechanism import SaslError

SETTING: Final = "sasl.kerberos.principal.to.local.rules"
_RULE: Final = re.compile(
    r"(DEFAULT)|RULE:\[([0-9]*):([^\]]*)\](?:\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?([LU])?", re.ASCII
)
_PARAMETER: Final = re.compile(r"\$([0-9]*)")
_REPLACEMENT: Final = re.compile(r"\\(.?)|\$([0-9]?)", re.DOTALL)
_PRINCIPAL: Final = re.compile(r"([^/@\\]*)(?:/([^/@\\]*))?(?:@([^/@\\]*))?")
_MOST_MEMORY_BYTES: Final = 1 << 20


class NoShortName(SaslError):
    """No rule makes a name of a principal that could be a user's."""


class Principal(NamedTuple):
    service: str
    host: str | None
    realm: str | None


def parse_principal(text: str) -> Principal:
    """`alice@REALM` or `kafka/host@REALM`. Raises `NoShortName` for more components, and for escaped signs in them."""
    found = _PRINCIPAL.fullmatch(text)
    if found is None or not found[1] or (found[2] is not None and found[3] is None):
        raise NoShortName(f"Malformed Kerberos name: {text!r}")
    return Principal(found[1], found[2], found[3])


class _Rule:
    """Any but DEFAULT. Making one raises `ValueError`."""

    def __init__(self, found: "re.Match[str]") -> None:
        if not found[2]:
            raise ValueError("a rule says how many components it is for")
        self.components = int(found[2])
        self._format: str = found[3]
        for parameter in _PARAMETER.finditer(self._format):
            if not parameter[1] or int(parameter[1]) > self.components:
                raise ValueError(f"{parameter[0]} is none of the components")
        self._which = None if found[4] is None else _compiled(found[4])
        self._from: Any = None
        self._to: list[str | int] = []
        if found[5] is not None:
            self._from = _compiled(found[6])
            self._to = _parts(found[7], self._from.groups)
        self._times = 0 if found[8] else 1
        self._case = found[9]

    def apply(self, parameters: Sequence[str]) -> str | None:
        base = _PARAMETER.sub(lambda parameter: parameters[int(parameter[1])], self._format)
        if self._which is not None and self._which.fullmatch(base) is None:
            return None
        if self._from is not None:
            base = self._from.sub(self._replaced, base, self._times)
        _check_simple(base)
        return base.lower() if self._case == "L" else base.upper() if self._case == "U" else base

    def _replaced(self, match: Any) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self._to)


class ShortNames:
    """The rules of a setting. Making one raises `ConfigError`."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        self._default_realm = default_realm
        self._rules = [_rule(text) for text in rules]

    def __call__(self, text: str) -> str:
        """Raises `NoShortName`."""
        principal = parse_principal(text)
        if principal.realm is None:
            return principal.service
        parameters = [principal.realm, principal.service]
        if principal.host is not None:
            parameters.append(principal.host)
        for rule in self._rules:
            name: str | None = None
            if rule is None:
                name = principal.service if principal.realm == self._default_realm else None
            elif rule.components == len(parameters) - 1:
                name = rule.apply(parameters)
            if name:
                return name
        raise NoShortName(f"no rule of {SETTING} makes a name of {text!r}")


def _rule(text: str) -> _Rule | None:
    """None is DEFAULT."""
    found = _RULE.match(text)
    try:
        if found is None or found.end() != len(text):
            raise ValueError("DEFAULT, or RULE:[COMPONENTS:FORMAT](WHICH)s/FROM/TO/g with an L or a U")
        return None if found[1] else _Rule(found)
    except ValueError as problem:
        raise ConfigError((Problem(SETTING, text, f"a list of rules ({problem})"),)) from None


def _check_simple(name: str) -> None:
    if "/" in name or "@" in name:
        raise NoShortName(f"a rule of {SETTING} leaves {name!r}, which is no short name")


def _compiled(pattern: str) -> Any:
    """Raises `ValueError`."""
    import re2

    options = re2.Options()
    options.max_mem = _MOST_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        raise ValueError(f"RE2 cannot use {pattern!r}: {problem.args[0].decode(errors='replace')}") from None


def _parts(replacement: str, groups: int) -> list[str | int]:
    """Text and numbers of groups, as Java reads a replacement. Raises `ValueError`."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        found = _REPLACEMENT.search(replacement, at)
        if found is None:
            parts.append(replacement[at:])
            break
        parts.append(replacement[at : found.start()])
        at = found.end()
        if found[1] is not None:
            if not found[1]:
                raise ValueError("a replacement ends in a backslash")
            parts.append(found[1])
            continue
        if not found[2] or int(found[2]) > groups:
            raise ValueError(f"{found[0]} is no group of the pattern")
        group = int(found[2])
        # A further digit belongs to the number as long as there is such a group.
        while at < len(replacement) and replacement[at] in "0123456789" and group * 10 + int(replacement[at]) <= groups:
            group = group * 10 + int(replacement[at])
            at += 1
        parts.append(group)
    return parts
