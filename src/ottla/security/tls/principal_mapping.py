"""From the name in a certificate to the name of a principal: `ssl.principal.mapping.rules` (KIP-371).

Rules are tried in their order, and the first that matches the whole name counts. DEFAULT is the name as it is.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/           the common name alone
    RULE:^CN=(.*?),.*$/$1/L                         in lower case; /U is upper case
    DEFAULT

A name that no rule matches has no principal: its connection is refused, as in Kafka.
"""

import re
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.config.parse import ConfigError, Problem

SETTING: Final = "ssl.principal.mapping.rules"
_RULES: Final = re.compile(r"\s*(DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:[,\n]\s*|$)", re.S)
_GROUP: Final = re.compile(r"\\(.)|\$(\d)|(\$)", re.S)


class NoRuleMatches(OttlaError, ValueError):
    """No rule matches a name."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None is DEFAULT."""
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        text = self.pattern.sub(lambda match: _GROUP.sub(lambda found: _part(found, match), self.replacement), name)
        return text.lower() if self.case == "L" else text.upper() if self.case == "U" else text


def _part(found: re.Match[str], match: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1]
    if found[2] is not None:
        return match[int(found[2])] or ""
    return "$"


class PrincipalMapping:
    """The rules of a setting. Making one raises `ConfigError`."""

    def __init__(self, text: str) -> None:
        self._rules = _parse(text)

    def name_of(self, distinguished_name: str) -> str:
        """Raises `NoRuleMatches`."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoRuleMatches(f"no rule of {SETTING} matches {distinguished_name!r}")


def _parse(text: str) -> tuple[_Rule, ...]:
    rules: list[_Rule] = []
    at = 0
    while at < len(text):
        found = _RULES.match(text, at)
        if found is None or found.end() == at:
            raise _wrong(text[at:], "DEFAULT, or RULE:PATTERN/REPLACEMENT/ with an L or a U after it, split by commas")
        whole, pattern, replacement, case = found.group(1, 2, 3, 4)
        rules.append(_Rule(None, "", "") if whole == "DEFAULT" else _rule(text, pattern, replacement, case))
        at = found.end()
    return tuple(rules)


def _rule(text: str, pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise _wrong(text, f"rules whose patterns can be read ({problem})") from problem
    for found in _GROUP.finditer(replacement):
        if found[2] is not None and int(found[2]) > compiled.groups:
            raise _wrong(text, f"rules whose replacements name groups of their patterns (${found[2]} is none)")
    return _Rule(compiled, replacement, case)


def _wrong(text: str, bound: str) -> ConfigError:
    return ConfigError((Problem(SETTING, text, bound),))
