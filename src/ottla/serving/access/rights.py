"""What one client may do, while one request of its is checked."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ottla.apis.error_responses import refusal_response
from ottla.base.ids import Uuid
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import RequestContext, Respond
from ottla.security.acls.authorizer import Authorizer
from ottla.serving.access.denials import Denials
from ottla.serving.node_settings import NodeSettings
from ottla.wire.acls import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.errors import ErrorCode

MOST_REMEMBERED: Final = 1000
"""Decisions of one request."""

Proceed: TypeAlias = Callable[[Any, Respond], None]
Check: TypeAlias = "Callable[[Rights, Question], None]"


class Question(NamedTuple):
    """A request that is to be checked. `proceed` hands it to what answers it, with where the answer is to go.

    `context` is None where there is no connection to speak of: at a controller.
    """

    request: Any
    version: int
    respond: Respond
    proceed: Proceed
    context: RequestContext | None = None

    def pass_on(self) -> None:
        self.proceed(self.request, self.respond)

    def refuse(self, error: ErrorCode, words: str | None = None) -> None:
        """The whole request is refused, with these words where a reply has a place for them."""
        self.respond(refusal_response(self.request, self.version, error, words))


class Guard(Protocol):
    """What decides, and what is known of the cluster: the gate."""

    authorizer: Authorizer
    denials: Denials
    image: MetadataImage
    node_settings: NodeSettings


class Rights:
    """`tell` says whether a refusal is an event for the audit log, or only something that a client is not shown.

    One is made for every request, and so costs little. Of a request with very many names the first decisions are
    remembered: more would take longer than to decide, and drive out what is remembered of all other clients.
    """

    __slots__ = ("_api", "_asked", "_guard", "_host", "principal")

    def __init__(self, guard: Guard, principal: str, host: str, api: str) -> None:
        self._guard = guard
        self.principal = principal
        self._host = host
        self._api = api
        self._asked = 0

    @property
    def image(self) -> MetadataImage:
        return self._guard.image

    @property
    def node_settings(self) -> NodeSettings:
        return self._guard.node_settings

    def missing(self, operation: AclOperation) -> str:
        """What a client hears that may not do something with the cluster. Apache Kafka shows the request at length."""
        return f"Request {self._api} of {self.principal} from {self._host} needs {operation.name} permission."

    def allow(self, operation: AclOperation, resource: AclResource, name: str, *, tell: bool = True) -> bool:
        self._asked += 1
        authorizer = self._guard.authorizer
        decide = authorizer.allows if self._asked <= MOST_REMEMBERED else authorizer.decide
        if decide(self.principal, self._host, operation, resource, name):
            return True
        if tell:
            self._guard.denials.note(self.principal, self._host, operation, resource, name, self._api)
        return False

    def allow_topic(self, operation: AclOperation, name: str, *, tell: bool = True) -> bool:
        return self.allow(operation, AclResource.TOPIC, name, tell=tell)

    def allow_group(self, operation: AclOperation, name: str, *, tell: bool = True) -> bool:
        return self.allow(operation, AclResource.GROUP, name, tell=tell)

    def allow_transaction(self, operation: AclOperation, name: str, *, tell: bool = True) -> bool:
        return self.allow(operation, AclResource.TRANSACTIONAL_ID, name, tell=tell)

    def allow_cluster(self, operation: AclOperation, *, tell: bool = True) -> bool:
        return self.allow(operation, AclResource.CLUSTER, CLUSTER_NAME, tell=tell)

    def allow_any_topic(self, operation: AclOperation) -> bool:
        return self._guard.authorizer.allows_any(self.principal, self._host, operation, AclResource.TOPIC)

    def operations(self, resource: AclResource, name: str) -> int:
        """As a bit field (KIP-430)."""
        return self._guard.authorizer.authorized_operations(self.principal, self._host, resource, name)

    def cluster_operations(self) -> int:
        """Nothing, to a client that may not even see the cluster."""
        if not self.allow_cluster(AclOperation.DESCRIBE, tell=False):
            return 0
        return self.operations(AclResource.CLUSTER, CLUSTER_NAME)

    def topic_name(self, topic_id: Uuid) -> str | None:
        topic = self._guard.image.topics.by_id.get(topic_id)
        return topic.name if topic is not None else None
