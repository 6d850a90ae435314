"""What tests of several connectors share."""

from collections.abc import Iterator

import pytest

from tests.unit.connect.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 on loopback, for all tests of this process; each test has a bucket of its own."""
    pytest.importorskip("moto")
    with s3_server() as made:
        yield made
