"""The node. Who it is, what it does, and its threads."""

from ottla.config.bounds import Items, at_least
from ottla.config.setting import (
    ANY, CLUSTER_WIDE, HIGH, LOW, MEDIUM, REQUIRED, Class, Flag, Int, List, Long, Text,
)

SETTINGS = (
    List("process.roles", REQUIRED, Items(("broker", "controller"), may_be_empty=False), HIGH,
         "What this node does: `broker` serves clients, `controller` votes on and leads the cluster's metadata; one or "
         "both.", acted_on=True),
    Int("node.id", REQUIRED, at_least(0), HIGH,
        "The number of this node; no two nodes of a cluster, of either role, have the same.", acted_on=True),
    Int("broker.id", -1, ANY, HIGH,
        "An older name of `node.id`; if both are given they must agree.", acted_on=True),
    Text("broker.rack", None, ANY, MEDIUM,
         "Where this node stands (rack, zone), so that replicas are spread and consumers can read from one near them.",
         acted_on=True),

    # Life in the cluster
    Int("broker.heartbeat.interval.ms", 2000, ANY, MEDIUM,
        "Time between two heartbeats of a broker to the controller.", acted_on=True),
    Int("broker.session.timeout.ms", 9000, ANY, MEDIUM,
        "Silence after which the controller counts a broker as gone.", acted_on=True),
    Int("initial.broker.registration.timeout.ms", 60_000, ANY, MEDIUM,
        "How long a starting broker tries to register with the controller before it gives up and exits.",
        acted_on=True),
    Flag("controlled.shutdown.enable", True, ANY, MEDIUM,
         "Whether a stopping broker hands its leaderships over first.", acted_on=True),
    Flag("delete.topic.enable", True, ANY, HIGH,
         "Whether topics can be deleted; if not, a deletion is refused.", acted_on=True),

    # Threads and queues
    Int("num.io.threads", 8, at_least(1), HIGH,
        "Threads that carry out requests, disk work included.", CLUSTER_WIDE),
    Int("num.network.threads", 3, at_least(1), HIGH,
        "Threads of a listener that read requests from the network and write replies to it.", CLUSTER_WIDE),
    Int("background.threads", 10, at_least(1), HIGH,
        "Threads for periodic work: deletion, flushing, checkpoints.", CLUSTER_WIDE),
    Int("queued.max.requests", 500, at_least(1), HIGH,
        "Requests that may wait to be carried out before the network stops reading more."),
    Long("queued.max.request.bytes", -1, ANY, MEDIUM,
         "Bytes of requests that may wait before the network stops reading more; -1 is no limit.", acted_on=True),
    Int("request.timeout.ms", 30_000, ANY, HIGH,
        "How long this node, as the client of another, waits for a reply before it retries or fails.", acted_on=True),

    # Waiting rooms of requests that are not yet answered
    Int("fetch.purgatory.purge.interval.requests", 1000, ANY, MEDIUM,
        "Finished fetches that may stay in the waiting room before it is swept."),
    Int("producer.purgatory.purge.interval.requests", 1000, ANY, MEDIUM,
        "Finished produce requests that may stay in the waiting room before it is swept."),
    Int("delete.records.purgatory.purge.interval.requests", 1, ANY, MEDIUM,
        "Finished DeleteRecords requests that may stay in the waiting room before it is swept."),
    Int("share.fetch.purgatory.purge.interval.requests", 1000, ANY, MEDIUM,
        "Finished share fetches that may stay in the waiting room before it is swept."),

    # Plug-ins
    Class("alter.config.policy.class.name", None, ANY, LOW,
          "Class that may refuse changes of configuration (AlterConfigPolicy)."),
    Class("create.topic.policy.class.name", None, ANY, LOW,
          "Class that may refuse the creation of topics (CreateTopicPolicy)."),
    Text("authorizer.class.name", "", ANY, LOW,
         "Class that decides who may do what; empty, everyone may do everything. "
         "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`, the only one there is, keeps its rules in the "
         "cluster's metadata.", acted_on=True),
    List("config.providers", (), Items(), LOW,
         "Names of providers that stand behind `${provider:path:key}` references; each is set up by its own "
         "`config.providers.<name>.*` keys.", CLUSTER_WIDE),
    List("early.start.listeners", None, Items(may_be_null=True), HIGH,
         "Listeners that may open before the authorizer is ready. Not given, those of the controllers."),
)
