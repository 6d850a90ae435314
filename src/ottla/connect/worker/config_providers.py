"""Values that stand elsewhere: `${file:/a.properties:key}`, `${directory:/path:file}` and `${env:NAME}` (KIP-297).

A worker names its providers (`config.providers=file`, `config.providers.file.class=…FileConfigProvider`), and each is
one of Kafka's three, under its class name. As in Kafka, `allowed.paths` bounds what file and directory may read, and
`allowlist.pattern` what env may; a reference to a provider that is not there stays as it stands. What a value
stands for is put in when a connector is started or validated: configurations keep the reference, in the topic and in
replies.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final, Protocol

from ottla.config.properties import read_properties
from ottla.connect.options import InvalidOption

_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."


class Files(Protocol):
    """What providers need of a disk and a process. Both raise `OSError`."""

    def read(self, path: str) -> bytes: ...
    def real_path(self, path: str) -> str: ...


class ConfigProviders:
    """Those of a worker. `environment` is the process's."""

    def __init__(self, worker: Mapping[str, str], files: Files, environment: Mapping[str, str]) -> None:
        """Raises `InvalidOption`."""
        self._providers: dict[str, Callable[[str, str], str | None]] = {}
        for name in filter(None, (one.strip() for one in worker.get("config.providers", "").split(","))):
            prefix = f"config.providers.{name}."
            class_name = worker.get(f"{prefix}class")
            if class_name is None:
                raise InvalidOption(f'Missing required configuration "{prefix}class" which has no default value.')
            given = {key.removeprefix(f"{prefix}param."): value for key, value in worker.items()}
            self._providers[name] = _make(class_name.strip(), given, files, environment)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._providers)

    def resolved(self, config: Mapping[str, str | None], values: dict[str, str] | None = None) -> dict[str, str]:
        """With what is referred to put in; members that are null are left out. `values` gets each value, and the
        reference that stands for it. Raises `InvalidOption`, which names the setting and the reference, and no value.
        """
        found = {} if values is None else values
        return {key: self._resolve(key, value, found) for key, value in config.items() if value is not None}

    def _resolve(self, key: str, text: str, values: dict[str, str]) -> str:
        if "${" not in text or not self._providers:
            return text

        def put_in(found: re.Match[str]) -> str:
            provider = self._providers.get(found[1])
            if provider is None:
                return found[0]
            try:
                value = provider(found[3] or "", found[4])
            except (OSError, ValueError) as problem:
                reason = getattr(problem, "strerror", None) or str(problem)
                raise InvalidOption(f"{key}: cannot read {found[0]}: {reason}") from None
            if value is None:
                raise InvalidOption(f"{key}: nothing is there for {found[0]}")
            values[value] = found[0]
            return value

        return _REFERENCE.sub(put_in, text)


def _make(
    class_name: str, given: Mapping[str, str], files: Files, environment: Mapping[str, str]
) -> Callable[[str, str], str | None]:
    allowed = tuple(filter(None, (one.strip() for one in given.get("allowed.paths", "").split(","))))

    def check(path: str) -> str:
        real = files.real_path(path)
        roots = [files.real_path(one) for one in allowed]
        if roots and not any(PurePosixPath(real).is_relative_to(root) for root in roots):
            raise ValueError("it is not below a directory of allowed.paths")
        return real

    def from_file(path: str, key: str) -> str | None:
        content = files.read(check(path))
        try:
            return read_properties(content).get(key)
        except ValueError:  # Its text quotes the file.
            raise ValueError("the file is no file of properties") from None

    def from_directory(path: str, key: str) -> str | None:
        if not key or "/" in key or key in (".", ".."):
            raise ValueError("the key is not the name of a file in the directory")
        return files.read(check(f"{path}/{key}")).decode()

    pattern = re.compile(given.get("allowlist.pattern", ".*"))

    def from_environment(_: str, key: str) -> str | None:
        return environment.get(key) if pattern.fullmatch(key) else None

    kinds = {
        "FileConfigProvider": from_file,
        "DirectoryConfigProvider": from_directory,
        "EnvVarConfigProvider": from_environment,
    }
    made = kinds.get(class_name.removeprefix(_PACKAGE))
    if made is None:
        there = ", ".join(_PACKAGE + kind for kind in kinds)
        raise InvalidOption(f"config provider {class_name} is not here; those that are: {there}")
    return made
