"""What a request of an API may need, and what it may count against. Which API needs what is in `ottla.apis.table`.

`needs` are the rights that the request's client must have, all of them, each on the resources of that kind that the
request names. `or_instead` is a right that serves as well as all of `needs`, on the cluster: an administrator may do to
every topic what another may do to some. `quota` is what the request is counted against (KIP-13, KIP-124, KIP-599).
`words` are reported when the right on the cluster is missing; by default, which right that is.
"""

from enum import Enum
from typing import Final, NamedTuple

from ottla.wire.acls import AclOperation, AclResource

ANONYMOUS: Final = "User:ANONYMOUS"
"""A client that nobody knows."""

TOPIC_WORDS: Final = "Topic authorization failed."
GROUP_WORDS: Final = "Group authorization failed."
TRANSACTION_WORDS: Final = "Transactional Id authorization failed."
CLUSTER_WORDS: Final = "Cluster authorization failed."
"""What Kafka says for an error code where it has nothing else to say."""
NO_WORDS: Final = ""
"""For replies that have a place for words, which Kafka leaves empty."""


class Quota(Enum):
    """What a client may use up. PRODUCE and FETCH count bytes, and the time of the request as all others do."""

    PRODUCE = "produce"
    FETCH = "fetch"
    REQUEST = "request"
    CONTROLLER_MUTATION = "controller mutation"
    EXEMPT = "exempt"
    """What nodes of the cluster ask of each other."""


class Need(NamedTuple):
    operation: AclOperation
    resource: AclResource


class Access(NamedTuple):
    """See the module."""

    needs: tuple[Need, ...]
    quota: Quota = Quota.REQUEST
    or_instead: Need | None = None
    words: str | None = None


def _on(resource: AclResource, operation: AclOperation) -> Need:
    return Need(operation, resource)


READ_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.READ)
WRITE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.WRITE)
DESCRIBE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.DESCRIBE)
DELETE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.DELETE)
ALTER_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.ALTER)
CREATE_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.CREATE)
CONFIGS_OF_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.DESCRIBE_CONFIGS)
ALTER_CONFIGS_OF_TOPIC: Final = _on(AclResource.TOPIC, AclOperation.ALTER_CONFIGS)
READ_GROUP: Final = _on(AclResource.GROUP, AclOperation.READ)
DESCRIBE_GROUP: Final = _on(AclResource.GROUP, AclOperation.DESCRIBE)
DELETE_GROUP: Final = _on(AclResource.GROUP, AclOperation.DELETE)
CONFIGS_OF_GROUP: Final = _on(AclResource.GROUP, AclOperation.DESCRIBE_CONFIGS)
ALTER_CONFIGS_OF_GROUP: Final = _on(AclResource.GROUP, AclOperation.ALTER_CONFIGS)
WRITE_TXN: Final = _on(AclResource.TRANSACTIONAL_ID, AclOperation.WRITE)
DESCRIBE_TXN: Final = _on(AclResource.TRANSACTIONAL_ID, AclOperation.DESCRIBE)
CREATE: Final = _on(AclResource.CLUSTER, AclOperation.CREATE)
ALTER: Final = _on(AclResource.CLUSTER, AclOperation.ALTER)
DESCRIBE: Final = _on(AclResource.CLUSTER, AclOperation.DESCRIBE)
CONFIGS: Final = _on(AclResource.CLUSTER, AclOperation.DESCRIBE_CONFIGS)
ALTER_CONFIGS: Final = _on(AclResource.CLUSTER, AclOperation.ALTER_CONFIGS)
CLUSTER_ACTION: Final = _on(AclResource.CLUSTER, AclOperation.CLUSTER_ACTION)
IDEMPOTENT_WRITE: Final = _on(AclResource.CLUSTER, AclOperation.IDEMPOTENT_WRITE)

OPEN: Final = Access(())
OF_NODES: Final = Access((CLUSTER_ACTION,), Quota.EXEMPT)
