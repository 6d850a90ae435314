"""AlterConfigs and IncrementalAlterConfigs: what is settled on this node, and what goes to the controller.

The codes are those of Apache Kafka 4.3.1 for the same requests.
"""

import logging

import pytest

from ottla.config.parse import ConfigError, Problem
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.unit.broker.brokers import TestNode

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2


def resource(type_, name, *changes):
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def replace(type_, name, **values):
    return AlterConfigsRequest.AlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[
            AlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in values.items()
        ],
    )


def sent_to_controller(node):
    asked = node.controller.asked
    return [[(each.resource_type, each.resource_name) for each in request.resources] for request in asked]


def outcomes(reply):
    return [(each.resource_type, each.resource_name, each.error_code) for each in reply.responses]


def decided(response, *results):
    return response(
        responses=[
            response.AlterConfigsResourceResponse(resource_type=type_, resource_name=name, error_code=code)
            for type_, name, code in results
        ]
    )


def alter(node, *resources, version=1, validate_only=False):
    return node.send(IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only), version)


@pytest.fixture
def a_logger():
    logger = logging.getLogger("ottla.test.of.levels")
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("version", range(2))
def test_the_controllers_answers_come_back_in_the_order_of_the_request(version):
    node = TestNode()
    node.controller.replies.append(
        decided(IncrementalAlterConfigsResponse, (BROKER, "", 0), (TOPIC, "a", ErrorCode.INVALID_CONFIG))
    )
    reply = alter(
        node,
        resource(TOPIC, "a", ("retention.ms", SET, "x")),
        resource(BROKER, "2", ("log.cleaner.threads", SET, "2")),
        resource(BROKER, "", ("log.retention.ms", SET, "1")),
        version=version,
    )
    assert sent_to_controller(node) == [[(TOPIC, "a"), (BROKER, "")]]
    assert outcomes(reply) == [
        (TOPIC, "a", ErrorCode.INVALID_CONFIG),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "", ErrorCode.NONE),
    ]


def test_a_resource_that_appears_twice_is_not_changed_at_all():
    node = TestNode()
    node.controller.replies.append(decided(IncrementalAlterConfigsResponse, (TOPIC, "b", 0)))
    twice = resource(TOPIC, "a", ("retention.ms", SET, "1"))
    reply = alter(node, twice, twice, resource(TOPIC, "b", ("retention.ms", SET, "1")))
    assert outcomes(reply) == [
        (TOPIC, "a", ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", ErrorCode.INVALID_REQUEST),
        (TOPIC, "b", ErrorCode.NONE),
    ]
    assert sent_to_controller(node) == [[(TOPIC, "b")]]


@pytest.mark.parametrize("name", ["2", "x", "-1"])
def test_settings_of_another_broker_go_to_that_broker(name):
    node = TestNode()
    reply = alter(node, resource(BROKER, name, ("log.cleaner.threads", SET, "2")))
    assert outcomes(reply) == [(BROKER, name, ErrorCode.INVALID_REQUEST)]
    assert node.controller.asked == []


def test_key_stores_are_given_to_a_listener():
    node = TestNode()
    reply = alter(node, resource(BROKER, "1", ("ssl.keystore.location", SET, "/x")))
    assert outcomes(reply) == [(BROKER, "1", ErrorCode.INVALID_REQUEST)]
    node.controller.replies.append(decided(IncrementalAlterConfigsResponse, (BROKER, "1", 0)))
    reply = alter(node, resource(BROKER, "1", ("listener.name.inside.ssl.keystore.location", SET, "/x")))
    assert outcomes(reply) == [(BROKER, "1", ErrorCode.NONE)]


def test_files_of_keys_are_read_on_a_worker_and_what_cannot_be_used_is_refused():
    node = TestNode()
    settings = node.broker.node_settings
    settings._workers = node.workers
    looked_at = []

    def check(values, changed):
        looked_at.append((values.given["listener.name.inside.ssl.keystore.location"], changed))
        raise ConfigError((Problem("ssl.keystore.location", "/none", "a file"),))

    settings.checks.append(check)
    node.workers.hold()
    key = "listener.name.inside.ssl.keystore.location"
    replies = []
    asked = IncrementalAlterConfigsRequest(resources=[resource(BROKER, "1", (key, SET, "/none"))])
    node.hear(asked, 1, replies.append)
    assert (looked_at, replies) == ([], [])
    node.workers.step()
    assert looked_at == [("/none", frozenset({key}))]
    [reply] = replies
    assert outcomes(reply) == [(BROKER, "1", ErrorCode.INVALID_REQUEST)]
    assert "/none: it must be a file" in reply.responses[0].error_message
    assert node.controller.asked == []


def test_settings_without_files_wait_for_no_worker():
    node = TestNode()
    node.broker.node_settings.checks.append(lambda values, changed: pytest.fail("looked at"))
    node.controller.replies.append(decided(IncrementalAlterConfigsResponse, (BROKER, "1", 0)))
    assert outcomes(alter(node, resource(BROKER, "1", ("log.cleaner.threads", SET, "2")))) == [(BROKER, "1", 0)]


def test_when_the_controller_cannot_be_asked_every_resource_says_so():
    node = TestNode()
    node.controller.replies.append(ErrorCode.NOT_CONTROLLER)
    assert outcomes(alter(node, resource(TOPIC, "a"))) == [(TOPIC, "a", ErrorCode.NOT_CONTROLLER)]


def test_nothing_to_alter_is_answered_with_nothing():
    assert outcomes(alter(TestNode())) == []


@pytest.mark.parametrize("version", range(3))
def test_the_old_api_goes_the_same_way(version):
    node = TestNode()
    node.controller.replies.append(
        decided(AlterConfigsResponse, (TOPIC, "a", 0), (LOGGER, "1", ErrorCode.INVALID_REQUEST))
    )
    request = AlterConfigsRequest(
        resources=[replace(BROKER, "2"), replace(TOPIC, "a", retention_ms="9"), replace(LOGGER, "1", root="INFO")]
    )
    assert outcomes(node.send(request, version)) == [
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", ErrorCode.NONE),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST),
    ]
    assert sent_to_controller(node) == [[(TOPIC, "a"), (LOGGER, "1")]]


def test_log_levels_are_set_and_taken_back_without_the_controller(a_logger):
    node = TestNode()
    reply = alter(node, resource(LOGGER, "1", (a_logger.name, SET, "WARN")))
    assert outcomes(reply) == [(LOGGER, "1", ErrorCode.NONE)]
    assert a_logger.level == logging.WARNING
    alter(node, resource(LOGGER, "1", (a_logger.name, DELETE, None)))
    assert a_logger.level == logging.NOTSET


def test_validating_changes_no_level(a_logger):
    alter(TestNode(), resource(LOGGER, "1", (a_logger.name, SET, "WARN")), validate_only=True)
    assert a_logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("1", ("root", SET, "ZZ"), ErrorCode.INVALID_CONFIG),
        ("1", ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", SET, None), ErrorCode.INVALID_REQUEST),
        ("2", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_log_level_that_cannot_be_set_changes_none(a_logger, name, change, error):
    reply = alter(TestNode(), resource(LOGGER, name, (a_logger.name, SET, "WARN"), change))
    assert outcomes(reply) == [(LOGGER, name, error)]
    assert a_logger.level == logging.NOTSET
