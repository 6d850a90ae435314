"""Delta Lake and Iceberg on S3: rows, keys and positions as on a local directory, and what can be wrong there."""

from pathlib import Path

import pytest

from ottla.connect.errors import ConnectError, Retriable
from tests.unit.connect.lakes.given_lakes import Lake, at, records
from tests.unit.connect.s3_server import S3Server

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")


def lake_on(s3: S3Server, format: str, root: Path, bucket: str) -> Lake:
    if format == "Delta":
        return Lake(format, root, f"s3://{bucket}/lake", **s3.config)
    names = {"store.url": "endpoint", "s3.region": "region"}
    names |= {"aws.access.key.id": "access-key-id", "aws.secret.access.key": "secret-access-key"}
    more = {f"iceberg.catalog.s3.{name}": s3.config[ours] for ours, name in names.items()}
    return Lake(format, root, f"s3://{bucket}/lake", **more)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["Delta", "Iceberg"])
def test_rows_keys_and_positions_are_on_s3(s3: S3Server, format: str, tmp_path: Path) -> None:
    lake = lake_on(s3, format, tmp_path, s3.bucket(f"rows-{format.lower()}"))
    sink = lake.sink()
    words = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}, None]
    sink.put(records(words, keys=[1, 2, 1]), {at(): 3})
    late, new = lake.sink(), lake.sink()
    new.put(records([{"id": 2, "note": "c"}, {"id": 3, "note": "d"}], first=3), {at(): 5})
    with pytest.raises(Retriable, match="another writer of connector into"):
        late.put(records([{"id": 2, "note": "late"}], first=3), {at(): 4})
    assert lake.rows("id", "note") == [(2, "c"), (3, "d")]
    assert lake.sink().positions() == {at(): 5}
    assert not list((tmp_path / "warehouse").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("format", ["Delta", "Iceberg"])
def test_a_bucket_that_is_not_there_fails_without_secrets(s3: S3Server, format: str, tmp_path: Path) -> None:
    lake = lake_on(s3, format, tmp_path, "nowhere")
    with pytest.raises(ConnectError, match=r"nowhere|orders") as told:
        lake.sink().put(records([{"id": 1, "note": "a"}]), {at(): 1})
    assert s3.config["aws.secret.access.key"] not in str(told.value)
