"""Ids in the forms that Apache Kafka prints and reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import ZERO_UUID, TopicPartition, Uuid, parse_uuid, uuid_text


def test_a_uuid_is_written_as_22_characters_of_url_safe_base64() -> None:
    uuid = Uuid(bytes.fromhex("e0bea0de749284ff9e30234afbe5f3ab"))
    assert uuid_text(uuid) == "4L6g3nSShP-eMCNK--Xzqw"
    assert parse_uuid("4L6g3nSShP-eMCNK--Xzqw") == uuid


def test_the_zero_uuid_is_all_as() -> None:
    assert uuid_text(ZERO_UUID) == "A" * 22


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_reads_back(uuid: bytes) -> None:
    assert parse_uuid(uuid_text(Uuid(uuid))) == uuid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4L6g3nSShP-eMCNK--Xzq",
        "4L6g3nSShP-eMCNK--Xzqw==",
        "4L6g3nSShP+eMCNK//Xzqw",
        "4L6g3nSShP-eMCNK--Xzqx",  # bits beyond the sixteenth byte
        "4L6g3nSShP-eMCNK-- zqw",
        "4L6g3nSShP-eMCNK--Xz\u00e9w",
        "e0bea0de-7492-84ff-9e30",
    ],
)
def test_what_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"UUID|ASCII|base64"):
        parse_uuid(text)


def test_a_partition_is_named_as_its_directory() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
    assert f"{TopicPartition('a-b', 0)}" == "a-b-0"
