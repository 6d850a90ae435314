"""Our authorizer beside Apache Kafka's, over rules that chance has made; and Kafka's own tool over our node."""

import random
from collections.abc import Iterator

import pytest

from ottla.security.acls.authorizer import Authorizer
from ottla.testing.free_ports import free_ports
from ottla.testing.node import RunningNode
from ottla.wire import messages as m
from ottla.wire.acls import AclOperation, AclPermission, AclResource, PatternType
from ottla.wire.errors import ErrorCode
from tests.golden.access.access_table import PRINCIPAL
from tests.golden.access.guarded_nodes import EVERY_RULE, STANDARD
from tests.golden.access.prepared import until
from tests.interop.apache_kafka import MAIN_CLASSES, java
from tests.interop.security.test_access_table_and_kafka import GuardedKafka, a_guarded_kafka

pytestmark = pytest.mark.interop

SEED = 20
SETS_OF_RULES = 60
TOPICS = ("a", "ab", "abc", "abd", "b", "hardcode")
HERE = "127.0.0.1"
OPERATIONS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.CREATE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


def some_rules(chance: random.Random) -> list[m.CreateAclsRequest.AclCreation]:
    found = {}
    for _ in range(chance.randint(1, 6)):
        is_prefixed = chance.random() < 0.4
        rule = m.CreateAclsRequest.AclCreation(
            resource_type=AclResource.TOPIC,
            resource_name=chance.choice(("a", "ab", "abc", "h", "*") if is_prefixed else (*TOPICS, "*", "*")),
            resource_pattern_type=PatternType.PREFIXED if is_prefixed else PatternType.LITERAL,
            principal=chance.choice((PRINCIPAL, PRINCIPAL, "User:*", "User:somebody")),
            host=chance.choice(("*", "*", HERE, "127.0.0.2")),
            operation=chance.choice(OPERATIONS),
            permission_type=AclPermission.DENY if chance.random() < 0.35 else AclPermission.ALLOW,
        )
        found[repr(rule)] = rule
    return list(found.values())


def records(rules: list[m.CreateAclsRequest.AclCreation]) -> dict[int, m.AccessControlEntryRecord]:
    return {
        number: m.AccessControlEntryRecord(
            resource_type=rule.resource_type,
            resource_name=rule.resource_name,
            pattern_type=rule.resource_pattern_type,
            principal=rule.principal,
            host=rule.host,
            operation=rule.operation,
            permission_type=rule.permission_type,
        )
        for number, rule in enumerate(rules)
    }


def set_rules(kafka: GuardedKafka, rules: list[m.CreateAclsRequest.AclCreation]) -> None:
    every = m.DeleteAclsRequest.DeleteAclsFilter(**EVERY_RULE)
    kafka.send("admin", m.DeleteAclsRequest(filters=[every]), 3)
    kafka.send("admin", m.CreateAclsRequest(creations=rules), 3)
    until(
        lambda: kafka.send("admin", m.DescribeAclsRequest(**EVERY_RULE), 3),
        lambda reply: sum(len(resource.acls) for resource in reply.resources) == len(rules),
    )


def test_both_decide_alike_over_rules_of_chance() -> None:
    chance = random.Random(SEED)
    topic = m.MetadataRequest.MetadataRequestTopic
    request = m.MetadataRequest(
        topics=[topic(name=name) for name in TOPICS],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    with a_guarded_kafka() as kafka:
        create = m.CreateTopicsRequest.CreatableTopic
        new = [create(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        kafka.send("admin", m.CreateTopicsRequest(topics=new, timeout_ms=5000), 7)
        until(
            lambda: kafka.send("admin", request, 12),
            lambda reply: not any(topic.error_code for topic in reply.topics),
        )
        until(
            lambda: kafka.send("admin", m.InitProducerIdRequest(transactional_id=None), 4),
            lambda reply: not reply.error_code,
        )
        for _ in range(SETS_OF_RULES):
            rules = some_rules(chance)
            set_rules(kafka, rules)
            ours = Authorizer()
            ours.load(records(rules))
            told = {topic.name: topic for topic in kafka.send("bob", request, 12).topics}
            for name in TOPICS:
                may_describe = ours.allows(PRINCIPAL, HERE, AclOperation.DESCRIBE, AclResource.TOPIC, name)
                assert may_describe == (told[name].error_code == ErrorCode.NONE), (name, rules)
                if may_describe:
                    operations = ours.authorized_operations(PRINCIPAL, HERE, AclResource.TOPIC, name)
                    assert operations == told[name].topic_authorized_operations, (name, rules)
            given = kafka.send("bob", m.InitProducerIdRequest(transactional_id=None), 4)
            may_write_any = ours.allows_any(PRINCIPAL, HERE, AclOperation.WRITE, AclResource.TOPIC)
            assert may_write_any == (given.error_code == ErrorCode.NONE), rules


@pytest.fixture(scope="module")
def node() -> Iterator[tuple[str, str]]:
    """Addresses of a node of ours: its brokers' listener and its controllers'."""
    (controller,) = free_ports(1)
    settings = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
    }
    with RunningNode(config=settings) as running:
        yield running.bootstrap, f"127.0.0.1:{controller}"


@pytest.mark.parametrize("option", ["--bootstrap-server", "--bootstrap-controller"])
def test_kafkas_own_tool_makes_rules_at_our_node(node: tuple[str, str], option: str) -> None:
    at = (option, node[option == "--bootstrap-controller"])
    tool, topic = MAIN_CLASSES["kafka-acls"], f"java{option}"

    def run(*words: str) -> str:
        return java(tool, *at, *words).stdout

    run("--add", "--allow-principal", "User:alice", "--producer", "--topic", topic, "--idempotent")
    run("--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", "--operation", "All", "--topic", topic)
    listed = run("--list", "--topic", topic)
    assert "(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)" in listed
    assert "(principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY)" in listed
    run("--remove", "--force", "--topic", topic)
    assert run("--list", "--topic", topic).strip() == ""
