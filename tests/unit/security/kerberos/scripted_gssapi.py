"""The library `gssapi` as far as `security.kerberos.library` uses it: it notes what it is asked for, and fails if told.

Whether the real one behaves so is for `tests/interop/security/test_kerberos.py`.
"""

from enum import Enum, Flag
from types import SimpleNamespace
from typing import Any


class GSSError(Exception):
    def __init__(self, told: str, min_code: int = 1) -> None:
        super().__init__(f"Major (851968): Unspecified GSS failure, Minor ({min_code}): {told}")
        self.min_code = min_code
        self._told = told

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        assert code == self.min_code
        assert not is_major
        return [self._told]


class NameType(Enum):
    user = 1
    hostbased_service = 2
    kerberos_principal = 3


class RequirementFlag(Flag):
    mutual_authentication = 1
    integrity = 2


class ScriptedGssapi:
    """`fails` is what every step raises. `default_realm` is None where there is no configuration."""

    NameType = NameType
    RequirementFlag = RequirementFlag
    MechType = SimpleNamespace(kerberos="krb5")
    exceptions = SimpleNamespace(GSSError=GSSError)

    def __init__(self, fails: Exception | None = None, default_realm: str | None = "EAST") -> None:
        self.fails = fails
        self.default_realm = default_realm
        self.credentials: list[dict[str, Any]] = []
        self.contexts: list[Any] = []

    def Name(self, text: str, kind: NameType) -> "Name":  # noqa: N802 - the library's name
        return Name(self, text, kind)

    def Credentials(self, **given: Any) -> dict[str, Any]:  # noqa: N802
        if self.fails is not None:
            raise self.fails
        self.credentials.append(given)
        return given

    def SecurityContext(self, **given: Any) -> "Context":  # noqa: N802
        self.contexts.append(Context(self, given))
        return self.contexts[-1]  # type: ignore[no-any-return]


class Name:
    def __init__(self, library: ScriptedGssapi, text: str, kind: NameType) -> None:
        self._library = library
        self.text = text
        self.kind = kind

    def canonicalize(self, mechanism: str) -> str:
        if self._library.default_realm is None:
            raise GSSError("Configuration file does not specify default realm")
        return f"{self.text}@{self._library.default_realm}"


class Context:
    complete = False
    initiator_name = "alice@EAST"
    __DEFER_STEP_ERRORS__ = True

    def __init__(self, library: ScriptedGssapi, given: dict[str, Any]) -> None:
        self._library = library
        self.given = given

    def step(self, token: bytes | None) -> bytes | None:
        if self._library.fails is not None and not self.__DEFER_STEP_ERRORS__:
            raise self._library.fails
        return b"token"

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        assert not encrypt
        return SimpleNamespace(message=b"signed " + message)

    def unwrap(self, token: bytes) -> Any:
        if not token.startswith(b"signed "):
            raise GSSError("Token header is malformed or corrupt")
        return SimpleNamespace(message=token.removeprefix(b"signed "))
