"""The same requests to Apache Kafka and to our node, both fresh: every field of every reply is the same.

What may differ is in `MAY_DIFFER`, each with its reason; lists that have no order are in `WITHOUT_ORDER`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.apis.table import served_by_brokers, served_by_controllers
from ottla.config.scopes import OWN
from ottla.machines.metadata.image.features import SERVED
from ottla.testing.free_ports import free_ports
from ottla.testing.node import RunningNode
from ottla.wire.apis import ApiKey
from ottla.wire.messages import DescribeClusterRequest
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.compared_nodes import Ask, Pair, Rule, Side
from tests.interop.requests_to_compare import SCENES

pytestmark = pytest.mark.interop


def is_given(value: Any) -> Any:
    """The words are ours: whether there are any is compared."""
    return "words" if value else None


def is_known(value: Any) -> Any:
    """A number that each side counts for itself; -1 is that there is none."""
    return value if value in (-1, 0) else "a number"


def of_served_apis(apis: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A listener that does not serve Metadata is the controllers'."""
    for_clients = any(api["api_key"] == ApiKey.METADATA for api in apis)
    served = served_by_brokers() if for_clients else served_by_controllers()
    return sorted((api for api in apis if api["api_key"] in served), key=lambda api: int(api["api_key"]))


def of_served_features(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((feature for feature in features if feature["name"] in SERVED), key=lambda one: str(one["name"]))


def anything(_value: Any) -> None:
    return None


def unordered(items: list[Any] | None) -> list[Any] | None:
    return None if items is None else sorted(items, key=repr)


MAY_DIFFER: dict[str, Rule] = {
    # What is not served yet is not advertised.
    "ApiVersionsResponse.api_keys": of_served_apis,
    "supported_features": of_served_features,
    "finalized_features": of_served_features,
    # Kafka's controller writes a record now and then (NoOpRecord): its metadata log is longer.
    "ApiVersionsResponse.finalized_features_epoch": is_known,
    "DescribeQuorumResponse.PartitionData.high_watermark": is_known,
    "DescribeQuorumResponse.ReplicaState.log_end_offset": is_known,
    "DescribeQuorumResponse.PartitionData.leader_epoch": is_known,
    # When something happened.
    "last_fetch_timestamp": is_known,
    "last_caught_up_timestamp": is_known,
    "log_append_time_ms": is_known,
    # A session is known by a random number.
    "FetchResponse.session_id": bool,
    # The disk is what it is at that moment.
    "total_bytes": is_known,
    "usable_bytes": is_known,
    # Our words.
    "documentation": is_given,
    "error_message": is_given,
    "batch_index_error_message": is_given,
    # A cluster with users of SCRAM has a setting of ours, the secret of salts.
    "DescribeConfigsResponse.DescribeConfigsResult.configs": lambda configs: unordered(
        [config for config in configs if not config["name"].startswith(OWN)]
    ),
    # We say of more batches than Kafka what is wrong with them.
    "ProduceResponse.PartitionProduceResponse.error_message": anything,
}

WITHOUT_ORDER = (
    "MetadataResponse.topics",
    "DescribeTopicPartitionsResponse.topics",
    "CreateTopicsResponse.topics",
    "DeleteTopicsResponse.responses",
    "CreatePartitionsResponse.results",
    "configs",
    "config_resources",
    "UpdateFeaturesResponse.results",
    "ElectLeadersResponse.replica_election_results",
    "AlterClientQuotasResponse.entries",
    "AlterClientQuotasResponse.EntryData.entity",
    "DescribeClientQuotasResponse.entries",
    "DescribeClientQuotasResponse.EntryData.entity",
    "DescribeClientQuotasResponse.EntryData.values",
    "IncrementalAlterConfigsResponse.responses",
    "AlterConfigsResponse.responses",
    "DescribeConfigsResponse.results",
    "AlterPartitionReassignmentsResponse.responses",
    "FetchResponse.responses",
    "ListOffsetsResponse.topics",
    "OffsetForLeaderEpochResponse.topics",
    "DescribeLogDirsResponse.DescribeLogDirsResult.topics",
    "DescribeLogDirsResponse.DescribeLogDirsTopic.partitions",
    "DescribeUserScramCredentialsResponse.results",
    "DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult.credential_infos",
    "AlterUserScramCredentialsResponse.results",
)

OF_ITS_OWN = ("log.dirs", "listeners", "controller.quorum.voters")
# A node that nobody configured has these, and DescribeConfigs says so.
ALSO_GIVEN_TO_KAFKA = {
    "socket.send.buffer.bytes": -1,
    "socket.receive.buffer.bytes": -1,
    "socket.listen.backlog.size": 1000,
}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Both nodes have the same settings, but for addresses and directories."""
    port, controller_port = free_ports(2)
    with ApacheKafka(config=ALSO_GIVEN_TO_KAFKA) as kafka:
        config = {key: value for key, value in kafka.config.items() if key not in OF_ITS_OWN}
        config["listeners"] = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
        config["controller.quorum.voters"] = f"1@127.0.0.1:{controller_port}"
        controller = str(kafka.config["listeners"]).rpartition("//")[2]
        with RunningNode(config=config, port=port) as ours:
            sides = [
                Side(kafka.bootstrap, controller, {str(kafka.data): "<data>"}),
                Side(f"127.0.0.1:{port}", f"127.0.0.1:{controller_port}", {str(ours.data): "<data>"}),
            ]
            for side in sides:
                side.own[side.send(Ask(DescribeClusterRequest(), 0)).cluster_id] = "<cluster>"
            yield Pair(*sides, {**dict.fromkeys(WITHOUT_ORDER, unordered), **MAY_DIFFER})
            for side in sides:
                side.close()
            assert ours.is_running, ours.end_of_log()


@pytest.mark.parametrize("scene", SCENES)
def test_our_replies_are_kafkas(pair: Pair, scene: str) -> None:
    differences = pair.differences(SCENES[scene]())
    assert not differences, "\n".join(differences)
