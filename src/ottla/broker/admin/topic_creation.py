"""Creates topics that clients ask for, or that the node itself needs, once and in the background.

Nobody waits for the outcome: the reply says that the topic does not exist yet, and asks again. The internal
topics get the settings that their coordinators count on; all others what `num.partitions` and
`default.replication.factor` say.
"""

import logging
from collections.abc import Iterable

from ottla.base.ports import Clock
from ottla.config.parse import Values
from ottla.runtime.channels import THIS_NODE, Caller, ControllerChannel, newest_version
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest, CreateTopicsResponse

_log = logging.getLogger(__name__)

CreatableTopic = CreateTopicsRequest.CreatableTopic


class TopicCreation:
    """`in_flight` are topics that the controller has been asked for and has not yet answered about."""

    def __init__(self, node_settings: NodeSettings, controller: ControllerChannel, clock: Clock) -> None:
        self._node_settings = node_settings
        self._controller = controller
        self._log = RateLimitedLog(_log, clock.elapsed_s)
        self.in_flight: set[str] = set()

    def create(self, names: Iterable[str], caller: Caller = THIS_NODE) -> None:
        """`caller` is the client whose request mentions the topics, if it is not the node that needs them."""
        wanted = [name for name in names if name not in self.in_flight]
        if not wanted:
            return
        config = self._node_settings.effective
        request = CreateTopicsRequest(
            topics=[creatable_topic(name, config) for name in wanted], timeout_ms=config.integer("request.timeout.ms")
        )

        def decided(response: CreateTopicsResponse) -> None:
            self.in_flight.difference_update(wanted)
            for topic in response.topics:
                if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    self._log.warning("%s was not created: %s", topic.name, topic.error_message or topic.error_code)

        def failed(error: ErrorCode) -> None:
            self.in_flight.difference_update(wanted)
            self._log.warning("%s: not created: the controller did not answer: %s", ", ".join(wanted), error.name)

        self.in_flight.update(wanted)
        self._controller.ask(request, newest_version(request), caller, decided, failed)


def creatable_topic(name: str, config: Values) -> CreatableTopic:
    """What a topic is created with that nobody described."""
    match name:
        case "__consumer_offsets":
            return CreatableTopic(
                name=name,
                num_partitions=config.integer("offsets.topic.num.partitions"),
                replication_factor=config.integer("offsets.topic.replication.factor"),
                configs=_configs(
                    {
                        "cleanup.policy": "compact",
                        "segment.bytes": str(config.integer("offsets.topic.segment.bytes")),
                        "compression.type": "producer",
                    }
                ),
            )
        case "__transaction_state":
            return CreatableTopic(
                name=name,
                num_partitions=config.integer("transaction.state.log.num.partitions"),
                replication_factor=config.integer("transaction.state.log.replication.factor"),
                configs=_configs(
                    {
                        "unclean.leader.election.enable": "false",
                        "compression.type": "uncompressed",
                        "cleanup.policy": "compact",
                        "min.insync.replicas": str(config.integer("transaction.state.log.min.isr")),
                        "segment.bytes": str(config.integer("transaction.state.log.segment.bytes")),
                    }
                ),
            )
        case "__share_group_state":
            return CreatableTopic(
                name=name,
                num_partitions=config.integer("share.coordinator.state.topic.num.partitions"),
                replication_factor=config.integer("share.coordinator.state.topic.replication.factor"),
                configs=_configs(
                    {
                        "cleanup.policy": "delete",
                        "compression.type": "producer",
                        "segment.bytes": str(config.integer("share.coordinator.state.topic.segment.bytes")),
                        "min.insync.replicas": str(config.integer("share.coordinator.state.topic.min.isr")),
                        "retention.ms": "-1",
                    }
                ),
            )
        case _:
            return CreatableTopic(
                name=name,
                num_partitions=config.integer("num.partitions"),
                replication_factor=config.integer("default.replication.factor"),
            )


def _configs(values: dict[str, str]) -> list[CreateTopicsRequest.CreatableTopicConfig]:
    return [CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in values.items()]
