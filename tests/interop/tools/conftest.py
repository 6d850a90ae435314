"""An Apache Kafka broker and its tools, for all comparisons of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.apache_kafka import ApacheKafka
from tests.interop.tools.beside import Beside
from tests.interop.tools.kafkas_tools import KafkasTools


@pytest.fixture(scope="session")
def kafka() -> Iterator[ApacheKafka]:
    config = {
        # So that ACLs are kept, and everything is allowed all the same.
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
    }
    with ApacheKafka(config=config) as node:
        yield node


@pytest.fixture(scope="session")
def beside(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    controller = str(kafka.config["controller.quorum.voters"]).partition("@")[2]
    with KafkasTools() as tools:
        yield Beside(tools, kafka.bootstrap, controller, tmp_path_factory.mktemp("files"))
