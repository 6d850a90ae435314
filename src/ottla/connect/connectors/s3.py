"""Who we are to S3, and where it is: options that every connector with an `s3://` address has.

The names are those of Confluent's S3 sink. Without keys, the usual places of AWS count: environment, profile, the
machine's role. Secrets are never in messages: `hidden` is for texts that come from a library.
"""

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, Secret, Setting, Text
from ottla.connect.connectors.web.addresses import check_host
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption

S3_SETTINGS: Final[tuple[Setting, ...]] = (
    Text("s3.region", None, ANY, MEDIUM, "The region; by default what AWS's own settings say.", acted_on=True),
    Text("store.url", None, ANY, LOW, "Where S3 is, if it is not Amazon's: `http://minio:9000`.", acted_on=True),
    Text(
        "aws.access.key.id", None, ANY, HIGH, "The access key; by default what AWS's own settings say.", acted_on=True
    ),
    Secret("aws.secret.access.key", HIGH, "Its secret.", acted_on=True),
    Secret("aws.session.token", LOW, "The token that belongs to temporary keys.", acted_on=True),
)
_PASSES: Final = ("timeout", "timed out", "slow_down", "slowdown", "service_unavailable", "network", "connect", "503")


@dataclass(frozen=True, slots=True)
class S3Access:
    """An account and an address of S3."""

    region: str | None
    url: str | None
    key: str | None
    secret: str | None = field(repr=False)
    token: str | None = field(repr=False)

    @staticmethod
    def of(options: Values) -> "S3Access":
        """Raises `InvalidOption` for a key without its secret, and an address that is none."""
        key, secret = options.optional_text("aws.access.key.id"), options.secret("aws.secret.access.key")
        token = options.secret("aws.session.token")
        if (key is None) != (secret is None):
            raise InvalidOption("aws.access.key.id: give it together with aws.secret.access.key, or neither")
        url = options.optional_text("store.url")
        if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc):
            raise InvalidOption(f"store.url={url}: name it as http://HOST:PORT or https://HOST")
        return S3Access(
            options.optional_text("s3.region"),
            url,
            key,
            None if secret is None else secret.secret,
            None if token is None else token.secret,
        )

    def _check_address(self) -> None:
        """That it leads to no address where a cloud hands out credentials."""
        if self.url is not None and (host := urlsplit(self.url).hostname):
            check_host(host)

    def file_system(self) -> Any:
        """pyarrow's S3FileSystem."""
        self._check_address()
        try:
            from pyarrow.fs import S3FileSystem  # type: ignore[import-untyped]  # pyarrow ships no types
        except ImportError as error:
            raise ConnectError(f"this pyarrow is built without S3: {error}") from error
        given: dict[str, Any] = {"region": self.region, "endpoint_override": self.url}
        given |= {"access_key": self.key, "secret_key": self.secret, "session_token": self.token}
        try:
            return S3FileSystem(**{name: value for name, value in given.items() if value is not None})
        except (OSError, ValueError) as error:
            raise ConnectError(f"S3 cannot be used: {self.hidden(str(error))}") from error

    def for_delta(self) -> dict[str, str]:
        """`storage_options` of deltalake."""
        self._check_address()
        given = {"AWS_REGION": self.region, "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": self.key}
        given |= {"AWS_SECRET_ACCESS_KEY": self.secret, "AWS_SESSION_TOKEN": self.token}
        if self.url is not None and self.url.startswith("http:"):
            given["AWS_ALLOW_HTTP"] = "true"
        return {name: value for name, value in given.items() if value is not None}

    def for_iceberg(self) -> dict[str, str]:
        """Properties of a catalogue of pyiceberg."""
        given = {"s3.region": self.region, "s3.endpoint": self.url, "s3.access-key-id": self.key}
        given |= {"s3.secret-access-key": self.secret, "s3.session-token": self.token}
        return {name: value for name, value in given.items() if value is not None}

    def hidden(self, text: str) -> str:
        """A text without secrets."""
        for one in (self.secret, self.token):
            if one:
                text = text.replace(one, "[hidden]")
        return text

    def failure(self, place: str, error: BaseException) -> ConnectError:
        """What a library raised, as ours: `Retriable` for a network or a service that is away."""
        text = self.hidden(str(error)).partition("\n")[0]
        passes = any(word in text.lower() for word in _PASSES)
        return (Retriable if passes else ConnectError)(f"{place}: {text}")


def is_s3(address: str) -> bool:
    return address.startswith(("s3://", "s3a://"))
