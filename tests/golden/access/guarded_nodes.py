"""A node with an authorizer, whose clients are who a test says they are. User:admin is a super user."""

from collections.abc import Iterable
from typing import Any

from ottla.runtime.request import ClientConnection, RefusedRequest, RequestContext
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire import messages as m
from ottla.wire.frame import decode_request, encode_request
from ottla.wire.message import Message
from tests.unit.node.whole_nodes import COMBINED, WholeNode

ADMIN = "User:admin"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
HUNG_UP = "the connection was closed"
NO_ANSWER = "nothing was answered in time"
EVERY_RULE = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


class GuardedNode:
    """See the module. Requests go to the node's own function for them, as from a connection."""

    def __init__(self, disk: MemoryDisk | None = None, **settings: str) -> None:
        self.whole = WholeNode(
            COMBINED,
            disk,
            **{
                "authorizer_class_name": STANDARD,
                "super_users": ADMIN,
                "offsets_topic_num_partitions": "1",
                "offsets_topic_replication_factor": "1",
                "transaction_state_log_num_partitions": "1",
                "transaction_state_log_replication_factor": "1",
                "transaction_state_log_min_isr": "1",
                "group_initial_rebalance_delay_ms": "0",
                **settings,
            },
        )

    def ask(
        self,
        request: Message,
        version: int,
        *,
        to_controller: bool = False,
        principal: str = ADMIN,
        client: ClientConnection | None = None,
    ) -> Any:
        listener = "CONTROLLER" if to_controller else "PLAINTEXT"
        client = client or ClientConnection(1, listener, "127.0.0.1", principal)
        frame = encode_request(request, version, 7, "a test")[4:]
        context = RequestContext(request._schema.api_key, version, 7, "a test", client, 0.0, len(frame))
        replies: list[Any] = []
        server = self.whole.node._server
        assert server is not None
        try:
            server.handle(context, decode_request(memoryview(bytearray(frame))).message, replies.append)
        except RefusedRequest:
            return HUNG_UP
        for _ in range(100):
            if replies:
                return replies[0]
            self.whole.network.run()
            self.whole.timers.advance(1)
        return NO_ANSWER

    def create_rules(self, rules: Iterable[m.CreateAclsRequest.AclCreation]) -> None:
        reply = self.ask(m.CreateAclsRequest(creations=list(rules)), 3)
        assert not any(result.error_code for result in reply.results), reply

    def delete_rules(self) -> None:
        self.ask(m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter(**EVERY_RULE)]), 3)
