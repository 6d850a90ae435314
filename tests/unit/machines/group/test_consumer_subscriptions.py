"""The number by which a change of topics is noticed."""

import pytest
from xxhash import xxh3_64_intdigest

from ottla.base.ids import parse_uuid
from ottla.machines.group.consumer.topic_hash import group_hash
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.messages import PartitionRecord, RegisterBrokerRecord, TopicRecord

# Apache Kafka's library (hash4j 0.22.0) for the bytes 3, 10, 17, ... of these lengths.
OF_KAFKA = {
    0: 3244421341483603138, 1: 1433843135270481901, 2: 2058273368586827884, 3: 12180141160879835164,
    4: 7895465118229274323, 7: 10268930274873212462, 8: 6941064856527638883, 9: 18374517719163151272,
    15: 11439541028034589121, 16: 13314990914799711621, 17: 8163341949877205007, 32: 1873302701886544469,
    33: 4486878507168070088, 64: 2917965298538373825, 100: 13083933661539568799, 128: 7440608504995537343,
    129: 14295761343243267012, 200: 8389308914288017243, 240: 7229805477010515663, 241: 10082113959289486871,
    512: 17690705279202729245, 1024: 11205349619999208113, 1025: 9253807012321506678, 5000: 8762507191635236893,
}  # fmt: skip


@pytest.mark.parametrize("size", OF_KAFKA)
def test_the_hash_is_kafkas(size: int) -> None:
    assert xxh3_64_intdigest(bytes((7 * index + 3) & 255 for index in range(size))) == OF_KAFKA[size]


def image_of(partitions: int = 2, rack: str | None = None) -> MetadataImage:
    image = MetadataImage()
    topic_id = parse_uuid("CVuwvOOZSWO9mnZZje_qUA")
    image.replay(RegisterBrokerRecord(broker_id=1, rack=rack))
    image.replay(TopicRecord(name="plain", topic_id=topic_id))
    for index in range(partitions):
        image.replay(PartitionRecord(topic_id=topic_id, partition_id=index, replicas=(1,)))
    return image


def test_the_number_of_a_group_is_the_one_that_kafka_wrote() -> None:
    """In tests/golden: two partitions of the topic `plain`, on a broker without a rack."""
    assert group_hash(image_of(), {"plain"}) == 15585878278653378


def test_the_number_changes_with_everything_that_an_assignment_depends_on() -> None:
    numbers = [
        group_hash(image_of(), {"plain"}),
        group_hash(image_of(partitions=3), {"plain"}),
        group_hash(image_of(rack="one"), {"plain"}),
        group_hash(image_of(rack="two"), {"plain"}),
        group_hash(image_of(), set()),
    ]
    assert len(set(numbers)) == len(numbers)
    assert group_hash(image_of(), {"plain", "missing"}) == numbers[0]
