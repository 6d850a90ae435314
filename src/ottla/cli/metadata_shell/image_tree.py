"""The metadata as a tree, in the layout of Apache Kafka's shell: `/image` from the log, `/local` about this program.

One name differs: an entity of a quota that stands for all others (the default user, say) is `user()` here. Kafka
leaves it out, so that several entities have the same name, and `find` fails on them.
"""

from ottla import __version__
from ottla.base.ids import uuid_text
from ottla.cli.dump.kafka_json import java_double
from ottla.cli.metadata_shell import java_text
from ottla.cli.metadata_shell.reading import Metadata
from ottla.cli.metadata_shell.tree import Directory, File, Node
from ottla.machines.metadata.image.configs_image import ConfigsImage
from ottla.machines.metadata.image.features import METADATA_VERSION, METADATA_VERSIONS, FeaturesImage
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.image.quotas_image import QuotaEntity, QuotasImage
from ottla.machines.metadata.image.security_image import MECHANISMS, SecurityImage
from ottla.machines.metadata.image.topics_image import TopicImage

_QUOTA_TYPES = {"client-id": "clientId", "ip": "ip", "user": "user"}
_RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}


def tree_of(metadata: Metadata) -> Directory:
    return Directory({"image": _image(metadata), "local": _local()})


def _image(metadata: Metadata) -> Directory:
    image = metadata.image
    return Directory(
        {
            "acls": Directory({"byId": _acls(image.security)}),
            "clientQuotas": _quotas(image.quotas),
            "cluster": _cluster(image),
            "configs": _configs(image.configs),
            "delegationToken": _tokens(image.security),
            "features": _features(image.features),
            "producerIds": _producer_ids(image),
            "provenance": metadata.provenance,
            "scram": _scram(image.security),
            "topics": _topics(image),
        }
    )


def _local() -> Directory:
    return Directory({"commitId": _text("unknown"), "version": _text(__version__)})


def _acls(security: SecurityImage) -> Directory:
    return Directory({uuid_text(id): _text(java_text.acl_text(acl)) for id, acl in security.acls.items()})


def _tokens(security: SecurityImage) -> Directory:
    return Directory({id: _text(java_text.token_text(token)) for id, token in security.tokens.items()})


def _quotas(quotas: QuotasImage) -> Directory:
    return Directory(
        {
            _quota_name(entity): Directory({key: _text(java_double(value)) for key, value in values.items()})
            for entity, values in quotas.by_entity.items()
        }
    )


def _quota_name(entity: QuotaEntity) -> str:
    names = dict(entity)
    shown = (f"{title}({_escaped(names[type] or '')})" for type, title in _QUOTA_TYPES.items() if type in names)
    return "_".join(shown)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _cluster(image: MetadataImage) -> Directory:
    brokers: dict[str, Node] = {}
    for broker in image.brokers.by_id.values():
        brokers[str(broker.id)] = _text(java_text.broker_text(broker))
    controllers: dict[str, Node] = {}
    for controller in image.brokers.controllers.values():
        controllers[str(controller.id)] = _text(java_text.controller_text(controller))
    return Directory({"brokers": Directory(brokers), "controllers": Directory(controllers)})


def _configs(configs: ConfigsImage) -> Directory:
    found: dict[str, Node] = {}
    for resource, values in configs.by_resource.items():
        kind = _RESOURCE_TYPES.get(resource.type, "UNKNOWN")
        name = f"{kind}:{resource.name}" if resource.name else kind
        found[name] = Directory({key: _text(value) for key, value in values.items()})
    return Directory(found)


def _features(features: FeaturesImage) -> Directory:
    version = METADATA_VERSIONS.get(features.metadata_version)
    nodes: dict[str, Node] = {
        f"finalized_{name}": _text(str(level)) for name, level in features.levels.items() if name != METADATA_VERSION
    }
    nodes["metadataVersion"] = _text(f"Optional[{version.name}]" if version else "Optional.empty")
    return Directory(nodes)


def _producer_ids(image: MetadataImage) -> Directory:
    return Directory({"nextProducerId": _text(str(image.producer_ids.next_producer_id))})


def _scram(security: SecurityImage) -> Directory:
    return Directory(
        {
            name: Directory(
                {
                    user: _text(java_text.scram_text(credential))
                    for (type, user), credential in security.scram_credentials.items()
                    if type == mechanism.type
                }
            )
            for name, mechanism in MECHANISMS.items()
        }
    )


def _topics(image: MetadataImage) -> Directory:
    topics = {topic.id: _topic(topic) for topic in image.topics.by_id.values()}
    return Directory(
        {
            "byId": Directory({uuid_text(id): node for id, node in topics.items()}),
            "byName": Directory({topic.name: topics[topic.id] for topic in image.topics.by_id.values()}),
        }
    )


def _topic(topic: TopicImage) -> Directory:
    nodes: dict[str, Node] = {str(number): _partition(found) for number, found in topic.partitions.items()}
    nodes["id"] = _text(uuid_text(topic.id))
    nodes["name"] = _text(topic.name)
    return Directory(nodes)


def _partition(partition: PartitionImage) -> File:
    return lambda: java_text.partition_text(partition)


def _text(text: str) -> File:
    return lambda: text
