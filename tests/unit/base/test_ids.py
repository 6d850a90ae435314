"""Ids in the forms that Apache Kafka prints and reads."""

import uuid
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import ZERO_UUID, TopicPartition, Uuid, parse_uuid, random_uuid, uuid_hex_text, uuid_text


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


def test_random_uuids_are_of_version_4_as_javas() -> None:
    made = [random_uuid(Random(seed).randbytes) for seed in range(100)]
    assert {uuid.UUID(bytes=one).version for one in made} == {4}
    assert len(set(made)) == 100
    assert [uuid_hex_text(one) for one in made] == [str(uuid.UUID(bytes=one)) for one in made]
