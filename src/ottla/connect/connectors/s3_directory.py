"""A directory of files on S3 that is written exactly once, though S3 has no rename.

Theory of operation. Manifests are numbered, and each is one object: `_manifest/GROUP/NUMBER.json`, with the positions
of all partitions and the files of its put. A put writes its files first, and last the manifest with the next number, on
the condition that there is no such object (`If-None-Match: *`). That one request is the commit: of two workers that
both write number 8, one is refused, and removes its files.

A worker that did not write the last manifest takes over with its first put: it writes a manifest without files, under
the same condition. From then on no older worker can commit, so files of theirs that are in no manifest are leftovers;
it removes them. The number of that manifest is in the names of its own files: two workers never write the same object.

pyarrow has no conditional writes, so manifests are sent by a signed request of our own. That needs keys, from the
options or the environment. Without keys (a role of the machine), a manifest is written after a look; a store may also
ignore the condition. A warning says so: then one worker at a time is exactly once, and two that commit within the same
moment are not told apart.
"""

import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from logging import Logger
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from ottla.base.ids import TopicPartition
from ottla.connect.connectors.s3 import S3Access
from ottla.connect.errors import ConnectError, Retriable

MANIFESTS: Final = "_manifest"
_GROUP: Final = 1000
_TIMEOUT_S: Final = 60


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write: which records it has, and what writes them."""

    topic: str
    partition: int
    first: int
    last: int
    number: int
    """Among files of one put that have the same first record."""
    write: Callable[[IO[bytes]], None]


@dataclass(frozen=True, slots=True)
class Layout:
    """How files are named."""

    name: Callable[[NewFile, int], str]
    """Of a file, and of the number of the manifest by which its worker took over."""
    pattern: re.Pattern[str]
    """Reads a name: groups `topic`, `partition`, `first`, `owner`."""


class S3Directory:
    """`s3://BUCKET/PREFIX`, by one connector."""

    def __init__(self, address: str, access: S3Access, layout: Layout, log: Logger, setting: str) -> None:
        self._address, self._access, self._layout, self._log = address, access, layout, log
        self._bucket, self._root = bucket_and_path(address, setting)
        self._files = access.file_system()
        self._number = 0
        self._owner: int | None = None
        self._positions: dict[TopicPartition, int] = {}

    def positions(self) -> dict[TopicPartition, int]:
        """What the last manifest says."""
        try:
            number, said = self._last_manifest()
        except OSError as error:
            raise self._access.failure(self._address, error) from error
        if number != self._number:
            self._number, self._owner = number, None
        self._positions = {
            TopicPartition(topic, int(partition)): offset
            for topic, partitions in said.get("positions", {}).items()
            for partition, offset in partitions.items()
        }
        return dict(self._positions)

    def _last_manifest(self) -> tuple[int, dict[str, Any]]:
        from pyarrow.fs import FileSelector, FileType  # type: ignore[import-untyped]  # pyarrow ships no types

        if self._files.get_file_info(self._bucket).type == FileType.NotFound:
            raise ConnectError(f"{self._address}: there is no bucket {self._bucket}, or it may not be seen; create it")
        place = f"{self._root}/{MANIFESTS}"
        for kind in (FileType.Directory, FileType.File):
            found = self._files.get_file_info(FileSelector(place, allow_not_found=True))
            names = [one.path for one in found if one.type == kind]
            if not names:
                return 0, {}
            place = max(names)
        with self._files.open_input_stream(place) as file:
            text = file.read()
        try:
            return int(place.rpartition("/")[2].removesuffix(".json")), json.loads(text)
        except ValueError as error:
            raise ConnectError(f"s3://{place} is no manifest: {error}") from error

    def put(self, files: Iterable[NewFile], positions: Mapping[TopicPartition, int]) -> None:
        """Files and positions, both or neither. Raises `Retriable` if another worker has committed meanwhile."""
        written: list[str] = []
        try:
            if self._owner is None:
                self._take_over()
            assert self._owner is not None
            for one in files:
                name = self._layout.name(one, self._owner)
                written.append(name)
                with self._files.open_output_stream(f"{self._root}/{name}") as file:
                    one.write(file)
            self._commit({**self._positions, **positions}, written)
        except OSError as error:
            raise self._access.failure(self._address, error) from error
        except _Refused:
            self._owner = None
            self._remove(written)
            raise Retriable(f"another worker has written to {self._address}; nothing of this put counts") from None

    def _take_over(self) -> None:
        self._commit(self._positions, [])
        self._owner = self._number
        self._try_the_condition()
        self._remove(self._leftovers())

    def _try_the_condition(self) -> None:
        """Writes the manifest that is there once more: a store that has conditional writes refuses."""
        if self._keys() is None:
            self._log.warning(
                "%s: no keys in aws.access.key.id or the environment, so manifests are written without a condition: "
                "see to it that one worker at a time runs this connector",
                self._address,
            )
        elif self._put_once(self._path(self._number), self._text(self._positions, [])):
            self._log.warning(
                "%s: this store ignores If-None-Match: see to it that one worker at a time runs this connector",
                self._address,
            )

    def _leftovers(self) -> list[str]:
        """Files of other workers that begin where the manifests end."""
        from pyarrow.fs import FileSelector, FileType

        found: list[str] = []
        for one in self._files.get_file_info(FileSelector(self._root, allow_not_found=True, recursive=True)):
            name = one.path.removeprefix(f"{self._root}/")
            named = self._layout.pattern.fullmatch(name) if one.type == FileType.File else None
            if named is None or int(named["owner"]) == self._owner:
                continue
            known = self._positions.get(TopicPartition(named["topic"], int(named["partition"])), 0)
            if int(named["first"]) >= known:
                found.append(name)
        return found

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._files.delete_file(f"{self._root}/{name}")
            except OSError as error:
                self._log.warning("%s/%s is in no manifest and could not be removed: %s", self._address, name, error)

    # Manifests.

    def _path(self, number: int) -> str:
        return f"{self._root}/{MANIFESTS}/{number // _GROUP:012}/{number:012}.json"

    def _text(self, positions: Mapping[TopicPartition, int], files: Sequence[str]) -> bytes:
        said: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(positions.items()):
            said.setdefault(topic, {})[str(partition)] = offset
        return json.dumps({"positions": said, "files": list(files), "owner": self._owner}).encode()

    def _commit(self, positions: Mapping[TopicPartition, int], files: Sequence[str]) -> None:
        path, text = self._path(self._number + 1), self._text(positions, files)
        done = self._put_after_a_look(path, text) if self._keys() is None else self._put_once(path, text)
        if not done:
            raise _Refused
        self._number += 1
        self._positions = dict(positions)

    def _put_after_a_look(self, path: str, text: bytes) -> bool:
        from pyarrow.fs import FileType

        if self._files.get_file_info(path).type != FileType.NotFound:
            return False
        with self._files.open_output_stream(path) as file:
            file.write(text)
        return True

    def _keys(self) -> tuple[str, str, str | None] | None:
        if self._access.key is not None and self._access.secret is not None:
            return self._access.key, self._access.secret, self._access.token
        key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
        return (key, secret, os.environ.get("AWS_SESSION_TOKEN")) if key and secret else None

    def _put_once(self, path: str, text: bytes) -> bool:
        """One PUT, which succeeds if there is no such object. False if there is."""
        keys = self._keys()
        assert keys is not None
        region = self._files.region or "us-east-1"
        url = (self._access.url or f"https://s3.{region}.amazonaws.com").rstrip("/") + "/" + quote(path)
        wanted = {"if-none-match": "*", "content-type": "application/json"}
        headers = signed("PUT", url, wanted, text, keys, region, datetime.now(UTC))
        try:
            with urlopen(Request(url, data=text, headers=headers, method="PUT"), timeout=_TIMEOUT_S):
                return True
        except HTTPError as error:
            said = error.read(500).decode(errors="replace")
            if error.code in (409, 412):
                return False
            if error.code in (401, 403):
                raise ConnectError(
                    f"{self._address}: S3 refuses the request ({error.code}): check aws.access.key.id, "
                    "aws.secret.access.key and what they may do"
                ) from None
            kind = Retriable if error.code >= 500 or error.code == 429 else ConnectError
            raise kind(f"{self._address}: S3 answers {error.code}: {self._access.hidden(said)}") from None
        except (URLError, TimeoutError, ConnectionError) as error:
            # It may have been written all the same: the next start reads what there is.
            raise Retriable(f"{self._address}: S3 cannot be reached: {error}") from None


class _Refused(Exception):
    """There is a manifest of this number already."""


def bucket_and_path(address: str, setting: str) -> tuple[str, str]:
    """`s3://BUCKET/PREFIX` as the bucket, and bucket and prefix. Raises `ConnectError`."""
    bucket, _, prefix = address.partition("://")[2].partition("/")
    if not bucket:
        raise ConnectError(f"{setting}={address}: name it as s3://BUCKET/PREFIX")
    return bucket, "/".join([bucket, *(part for part in prefix.split("/") if part)])


def signed(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    keys: tuple[str, str, str | None],
    region: str,
    now: datetime,
) -> dict[str, str]:
    """The headers of a request to S3, with AWS's signature (version 4)."""
    key, secret, token = keys
    split = urlsplit(url)
    digest = hashlib.sha256(body).hexdigest()
    moment, day = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}"
    sent = {**headers, "host": split.netloc, "x-amz-content-sha256": digest, "x-amz-date": moment}
    if token is not None:
        sent["x-amz-security-token"] = token
    names = sorted(sent)
    lines = [method, split.path, split.query, *(f"{name}:{sent[name].strip()}" for name in names), ""]
    canonical = "\n".join([*lines, ";".join(names), digest])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signer = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        signer = hmac.digest(signer, part.encode(), "sha256")
    signature = hmac.digest(signer, text.encode(), "sha256").hex()
    sent["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return sent
