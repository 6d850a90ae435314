"""Whether a node has an authorizer, and the gate that it looks after requests with."""

from typing import TYPE_CHECKING, Final

from ottla.config.parse import ConfigError, Problem, Values

if TYPE_CHECKING:  # a node without an authorizer does not load it
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.machines.metadata.controller.controller import Controller
    from ottla.machines.metadata.image.delta import MetadataDelta
    from ottla.machines.metadata.image.metadata_image import MetadataImage
    from ottla.runtime.metadata.metadata_log import MetadataLog
    from ottla.runtime.request import ClientConnection
    from ottla.runtime.world import World
    from ottla.security.acls.authorizer import Authorizer
    from ottla.serving.access.gate import Gate
    from ottla.serving.node_settings import NodeSettings

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_CLASS: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"


def check_authorizer(values: Values) -> None:
    """Raises `ConfigError` for an authorizer that is not there, and for super users that are no principals."""
    name = values.text(_CLASS)
    if name not in ("", STANDARD):
        raise ConfigError((Problem(_CLASS, name, f"{STANDARD}, or left out: others are Java classes"),))
    super_users(values)


def super_users(values: Values) -> frozenset[str]:
    text = values.text(_SUPER_USERS)
    principals = frozenset(part.strip() for part in text.split(";") if part.strip())
    if any(":" not in principal for principal in principals):
        raise ConfigError((Problem(_SUPER_USERS, text, "principals as User:admin, with ; between them"),))
    return principals


def make_gate(world: "World", image: "MetadataImage", node_settings: "NodeSettings") -> "Gate | None":
    """None for a node on which everyone may do everything. Until it follows the rules, super users alone may."""
    values = node_settings.effective
    if not values.text(_CLASS):
        return None
    from ottla.security.acls.authorizer import Authorizer
    from ottla.serving.access.denials import Denials
    from ottla.serving.access.gate import Gate

    authorizer = Authorizer(
        super_users=super_users(values),
        allows_everyone_without_rules=values.flag("allow.everyone.if.no.acl.found"),
        is_ready=False,
    )
    return Gate(authorizer, Denials(world.timers.now_s), image, node_settings)


def follow_rules(
    authorizer: "Authorizer", metadata: "MetadataLog[Controller]", broker: "Callable[[], Broker | None]"
) -> None:
    """The metadata is that of the cluster by now. From here on what clients may do follows from the rules in it."""
    from ottla.wire.acls import AclOperation, AclResource

    image = metadata.image
    authorizer.load(image.security.acls)

    def may_read(client: "ClientConnection", topic: str | None) -> bool:
        who = client.principal, client.client_host
        if topic is None:
            return authorizer.allows_on_cluster(*who, AclOperation.CLUSTER_ACTION)
        return authorizer.allows(*who, AclOperation.READ, AclResource.TOPIC, topic)

    def on_metadata(delta: "MetadataDelta") -> None:
        if delta.acls:
            authorizer.change(delta.acls, image.security.acls)
            if (here := broker()) is not None:
                here.partitions.purgatory.release_without_rights(may_read)

    metadata.listen(on_metadata)
