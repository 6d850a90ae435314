"""kafka-cluster, -features, -metadata-quorum and -broker-api-versions print what Kafka's print."""

import pytest

from tests.interop.tools.beside import Beside

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    "words",
    [
        "cluster-id --bootstrap-server {broker}",
        "cluster-id -C {controller}",
        "cluster-id --bootstrap-s {broker}",
        "list-endpoints {at}",
        "list-endpoints {at} --include-fenced-brokers",
        "list-endpoints --bootstrap-controller {controller}",
        "list-endpoints --bootstrap-controller {controller} --include-fenced-brokers",
        "unregister {at} --id 7",
    ],
)
def test_cluster(beside: Beside, words: str) -> None:
    beside.same(f"kafka-cluster {words}")


@pytest.mark.parametrize(
    "command",
    [
        "kafka-cluster",
        "kafka-cluster nope",
        "kafka-cluster unregister {at}",
        "kafka-cluster unregister {at} --id x",
        "kafka-features",
        "kafka-features nope",
        "kafka-features describe",
        "kafka-metadata-quorum {at}",
        "kafka-metadata-quorum describe",
    ],
)
def test_a_wrong_command_line_is_told_alike(beside: Beside, command: str) -> None:
    beside.same(command, alone=True)


@pytest.mark.parametrize(
    "words",
    [
        "{at} describe",
        "{at} describe --node-id 1",
        "--bootstrap-controller {controller} describe",
        "{at} upgrade --feature metadata.version=99",
        "{at} upgrade --feature group.version=1 --dry-run",
        "{at} upgrade --feature nonsense=1 --dry-run",
        "{at} upgrade --release-version 4.2-IV0 --dry-run",
        "{at} upgrade --release-version 9.9",
        "{at} upgrade --metadata 4.3-IV0",
        "{at} upgrade",
        "{at} upgrade --feature bad",
        "{at} upgrade --feature share.version=1 --feature share.version=1",
        "{at} downgrade --feature metadata.version=20 --dry-run",
        "{at} downgrade --metadata 3.3-IV3 --unsafe --dry-run",
        "{at} disable --feature share.version --dry-run",
        "{at} disable",
        "version-mapping",
        "version-mapping --release-version 3.9-IV0",
        "version-mapping --release-version 4.1.0",
        "version-mapping --release-version bad",
        "feature-dependencies --feature group.version=1",
        "feature-dependencies --feature transaction.version=2 --feature metadata.version=25",
        "feature-dependencies --feature x=2",
        "feature-dependencies --feature x",
    ],
)
def test_features(beside: Beside, words: str) -> None:
    beside.same(f"kafka-features {words}")


@pytest.mark.parametrize(
    "words",
    [
        "{at} describe --status",
        "{at} describe --replication",
        "{at} describe --replication --human-readable",
        "--bootstrap-controller {controller} describe --status",
        "{at} describe --status --human-readable",
        "{at} describe --status --replication",
        "{at} describe",
        "{at} remove-controller --controller-id 3 --controller-directory-id 4L6g3nShT-eMCtK--X86sw",
        "{at} remove-controller --controller-id 3 --controller-directory-id bad",
        "{at} remove-controller --controller-id 3 --controller-directory-id 4L6g3nShT-eMCtK--X86sw --dry-run",
        "{at} add-controller",
    ],
)
def test_metadata_quorum(beside: Beside, words: str) -> None:
    beside.same(f"kafka-metadata-quorum {words}")


def test_broker_api_versions(beside: Beside) -> None:
    shown = beside.same("kafka-broker-api-versions {at}")
    assert "\tProduce(0): 0 to 13 [usable: 13]," in shown.out
    beside.same("kafka-broker-api-versions --nonsense")
    beside.same("kafka-broker-api-versions --command-config x")
