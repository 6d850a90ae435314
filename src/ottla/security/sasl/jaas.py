"""Logins as Kafka's settings write them (`sasl.jaas.config`): a login module, a flag, options, and a semicolon.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

Read as Kafka reads them: words may be quoted with either quote, backslashes escape within quotes, comments are Java's,
and a value that looks like a number has to be quoted. Messages never hold a value, which may be a secret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_FLAGS: Final = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_USER_PREFIX: Final = "user_"
_TOKEN = re.compile(
    r"""(?P<blank>[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/)
      | (?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?P=quote)
      | (?P<word>[A-Za-z_$\u00a0-\uffff][-.\w$\u00a0-\uffff]*)
      | (?P<number>[-.0-9]+)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROL: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class WrongJaas(OttlaError):
    """A login that is not written as it must be."""


class JaasEntry(NamedTuple):
    module: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module} {self.flag}, options [hidden])"

    def users(self) -> dict[str, str]:
        """The passwords that a server checks: `user_alice="secret"`."""
        return {
            key.removeprefix(_USER_PREFIX): value for key, value in self.options.items() if key.startswith(_USER_PREFIX)
        }


class _Token(NamedTuple):
    text: str | None
    """None for a number, of which Kafka makes nothing."""
    is_sign: bool = False


def parse_jaas(text: str) -> list[JaasEntry]:
    """All entries. Raises `WrongJaas`."""
    tokens = _tokens(text)
    entries = []
    while (module := next(tokens, None)) is not None:
        if module.is_sign or not module.text:
            raise WrongJaas("Login module not specified in JAAS config")
        entries.append(_entry(module.text, tokens))
    if not entries:
        raise WrongJaas("Login module not specified in JAAS config")
    return entries


def parse_login(text: str) -> JaasEntry:
    """The one entry that a setting has. Raises `WrongJaas`."""
    entries = parse_jaas(text)
    if len(entries) != 1:
        raise WrongJaas(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    return entries[0]


def _entry(module: str, tokens: Iterator[_Token]) -> JaasEntry:
    flag = next(tokens, None)
    if flag is None:
        raise WrongJaas("Login module control flag not specified in JAAS config")
    if flag.text is None or flag.text.upper() not in _FLAGS:
        raise WrongJaas("Invalid login module control flag in JAAS config")
    options: dict[str, str] = {}
    for key in tokens:
        if key == _Token(";", is_sign=True):
            return JaasEntry(module, flag.text.lower(), options)
        if key.is_sign or key.text is None:
            raise WrongJaas("an option of the JAAS config has no name")
        equals, value = next(tokens, None), next(tokens, None)
        if equals != _Token("=", is_sign=True) or value is None or value.is_sign or value.text is None:
            raise WrongJaas(f"Value not specified for key '{key.text}' in JAAS config")
        options[key.text] = value.text
    raise WrongJaas("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match["quote"]:
            yield _Token(_ESCAPE.sub(_unescaped, match["quoted"]))
        elif match["word"]:
            yield _Token(match["word"])
        elif match["number"]:
            yield _Token(None)
        elif match["sign"]:
            yield _Token(match["sign"], is_sign=True)


def _unescaped(match: "re.Match[str]") -> str:
    escape = match[1]
    if escape[0] in "01234567":
        return chr(int(escape, 8))
    return _CONTROL.get(escape, escape)
