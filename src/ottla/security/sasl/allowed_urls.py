"""Which URLs and files the settings of OAUTHBEARER may name.

Who may write a client's settings could otherwise have this process read any file, or ask any server of the network it
is in. So an operator names what is allowed, outside of the settings, as for Apache Kafka: in the system properties
`org.apache.kafka.sasl.oauthbearer.allowed.urls` and `….allowed.files`, which `KAFKA_OPTS` gives Kafka's scripts and us
alike, or in `OTTLA_OAUTHBEARER_ALLOWED_URLS` and `…_FILES`. What is not named is refused; by default, everything.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.parse import ConfigError, Problem

_PROPERTY: Final = "org.apache.kafka.sasl.oauthbearer.allowed."
_VARIABLE: Final = "OTTLA_OAUTHBEARER_ALLOWED_"
_OPTIONS: Final = "KAFKA_OPTS"


class AllowedResources(NamedTuple):
    urls: frozenset[str]
    files: frozenset[str]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "AllowedResources":
        return cls(_named(environment, "urls"), _named(environment, "files"))

    def check_url(self, setting: str, url: str) -> None:
        """Raises `ConfigError` for what is not among them, letter by letter."""
        if url not in self.urls:
            raise ConfigError((Problem(setting, url, _wanted("urls")),))

    def check_file(self, setting: str, path: str) -> None:
        if path not in self.files:
            raise ConfigError((Problem(setting, path, _wanted("files")),))


def _wanted(kind: str) -> str:
    return f"one of the {kind} that {_VARIABLE}{kind.upper()} allows (or -D{_PROPERTY}{kind} in {_OPTIONS})"


def _named(environment: Mapping[str, str], kind: str) -> frozenset[str]:
    given = environment.get(_VARIABLE + kind.upper(), "")
    if _PROPERTY + kind in environment.get(_OPTIONS, ""):
        from shlex import split

        flag = f"-D{_PROPERTY}{kind}="
        given = ",".join(
            [given, *(one.removeprefix(flag) for one in split(environment[_OPTIONS]) if one.startswith(flag))]
        )
    return frozenset(one.strip() for one in given.split(",") if one.strip())
