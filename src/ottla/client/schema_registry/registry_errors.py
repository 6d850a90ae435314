"""What a client of a schema registry raises."""

from ottla.base.errors import ClientError


class RegistryError(ClientError):
    """The registry has refused a request. `code` is the registry's own, 40403 for a schema that is not there."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status}, code {code})")
        self.status = status
        self.code = code
        self.message = message

    @property
    def is_missing(self) -> bool:
        """Whether the subject, version or schema is not there."""
        return self.status == 404


class RegistryUnreachable(ClientError):
    """No registry has answered, at any of the URLs, however often it was tried."""
