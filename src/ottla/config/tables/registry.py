"""The settings of a schema registry."""

from ottla.config.bounds import Between, Items, OneOf, at_least
from ottla.config.setting import ANY, HIGH, INT_MAX, LOW, MEDIUM, REQUIRED, Flag, Int, List, Text
from ottla.config.tables import broker

# General. Confluent's names where Confluent's registry has them; ours begin with `ottla.`.
_LEVELS = ("none", "backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive")

REGISTRY = (
    # Where it is
    List("listeners", ("http://0.0.0.0:8081",), Items(may_be_empty=False), HIGH,
         "Addresses to listen at, each `http://host:port` or `https://host:port`. Port 0 picks a free one.",
         acted_on=True),
    Text("host.name", "", ANY, HIGH,
         "Name by which the other registries reach this one. Not given: what the machine is called.", acted_on=True),
    Int("host.port", 0, Between(0, 65_535), MEDIUM,
        "Port by which the other registries reach this one; 0 is that of the listener.", acted_on=True),
    Text("inter.instance.protocol", "http", OneOf(("http", "https")), LOW,
         "Which listener the other registries use.", acted_on=True),
    Text("inter.instance.listener.name", "", ANY, LOW,
         "Name of the listener that the other registries use."),

    # The topic
    List("kafkastore.bootstrap.servers", REQUIRED, Items(may_be_empty=False), HIGH,
         "Some brokers of the cluster that has the topic, as `host:port`. Any other setting of a client may follow "
         "`kafkastore.` in the same way: `kafkastore.security.protocol`, `kafkastore.sasl.jaas.config`.",
         acted_on=True),
    Text("kafkastore.topic", "_schemas", ANY, HIGH,
         "Topic that holds all schemas. It has one partition and is compacted.", acted_on=True),
    Int("kafkastore.topic.replication.factor", 3, at_least(1), HIGH,
        "Replicas of the topic when it is created; as many as there are brokers, if they are fewer.", acted_on=True),
    Flag("kafkastore.topic.skip.validation", False, ANY, MEDIUM,
         "Whether the topic is neither created nor looked at before it is used.", acted_on=True),
    Int("kafkastore.timeout.ms", 10_000, at_least(1), MEDIUM,
        "How long a change may take until it is answered with 50002. Confluent's registry has 500.", acted_on=True),
    Int("kafkastore.init.timeout.ms", 60_000, at_least(1), MEDIUM,
        "How long the topic may take to be found and read when the registry starts.", acted_on=True),
    Int("kafkastore.write.max.retries", 5, at_least(0), LOW,
        "How often an id is looked for that is not in use. There is nothing to look for here."),

    # One writer
    Text("schema.registry.group.id", "schema-registry", ANY, MEDIUM,
         "Group in which registries of the same topic elect the one that writes; also the transactional id by which a "
         "former one is fenced.", acted_on=True),
    Flag("leader.eligibility", True, ANY, MEDIUM,
         "Whether this registry may be the one that writes.", acted_on=True),
    Flag("master.eligibility", None, ANY, LOW,
         "The older name of `leader.eligibility`, which it comes before.", acted_on=True),
    Int("kafkagroup.session.timeout.ms", 10_000, at_least(1), MEDIUM,
        "How long a registry may be silent until another takes its place.", acted_on=True),
    Int("kafkagroup.heartbeat.interval.ms", 500, at_least(1), MEDIUM,
        "How often a registry says that it is there, and hears that it is to elect. Confluent's registry has 3000.",
        acted_on=True),
    Int("kafkagroup.rebalance.timeout.ms", 300_000, at_least(1), MEDIUM,
        "How long an election may wait for a registry to join.", acted_on=True),
    Flag("leader.election.sticky", True, ANY, LOW,
         "Whether a leader stays leader while it lives. It does here."),
    Int("leader.connect.timeout.ms", 10_000, at_least(1), LOW,
        "How long connecting to the leader may take, to pass a request on.", acted_on=True),
    Int("leader.read.timeout.ms", 60_000, at_least(1), LOW,
        "How long the leader may take to answer a request that was passed on.", acted_on=True),

    # Schemas
    Text("schema.compatibility.level", "backward", OneOf(_LEVELS, any_case=True), HIGH,
         "Compatibility of subjects for which none is set.", acted_on=True),
    Text("avro.compatibility.level", None, ANY, LOW,
         "The older name of `schema.compatibility.level`, which it comes before.", acted_on=True),
    Flag("schema.validate.fields", False, ANY, LOW,
         "Whether fields may begin with `$$`, and reserved fields be used, where a config does not say.",
         acted_on=True),
    Flag("schema.validate.new.schemas", True, ANY, LOW,
         "Whether new schemas are held to what the format allows more strictly than old ones.", acted_on=True),
    Flag("schema.reject.empty.subject", True, ANY, LOW,
         "Whether a subject must have a name. Confluent's registry takes none, and cannot read it back.",
         acted_on=True),
    Flag("mode.mutability", True, ANY, LOW,
         "Whether modes may be changed.", acted_on=True),
    Int("schema.search.default.limit", 1_000, Between(1, INT_MAX), LOW,
        "Schemas of a list, where the request does not say how many.", acted_on=True),
    Int("schema.search.max.limit", 1_000, Between(1, INT_MAX), LOW,
        "Most schemas of a list.", acted_on=True),
    Int("schema.cache.size", 1_000, at_least(1), LOW,
        "Schemas that are kept parsed.", acted_on=True),

    # Limits
    Int("size.limit.filter.max.request.body.size", 2_097_152, at_least(1), MEDIUM,
        "Largest body of a request, in bytes.", acted_on=True),
    Int("ottla.registry.max.connections", 10_000, at_least(1), MEDIUM,
        "Most connections at a time; when there are more, the one that has been idle for longest is closed.",
        acted_on=True),

    # Who may do what
    Text("authentication.method", "NONE", OneOf(("NONE", "BASIC", "BEARER"), any_case=True), HIGH,
         "How clients say who they are: with a name and password, or with a token (JWT). Certificates count besides, "
         "where `ssl.client.auth` asks for them.", acted_on=True),
    Text("authentication.realm", "SchemaRegistry", ANY, MEDIUM,
         "The realm in the challenge for a password.", acted_on=True),
    Text("ottla.registry.auth.file", "", ANY, HIGH,
         "File with users and their rights, in the form of Karapace's `registry_authfile`. It is read again when it "
         "changes.", acted_on=True),
    Text("ottla.registry.users", "file", OneOf(("file", "kafka")), MEDIUM,
         "Where passwords are checked: in the file, or by logging in to the cluster (SCRAM or PLAIN).", acted_on=True),
    Text("ottla.registry.rights", "file", OneOf(("file", "kafka", "none")), MEDIUM,
         "Where rights come from: the file, the cluster's ACLs of the topics that subjects are of, or nowhere: then "
         "whoever has logged in may do everything.", acted_on=True),
    List("ottla.registry.super.users", (), Items(), MEDIUM,
         "Principals that may do everything, as `User:name`; the certificates of the other registries are some.",
         acted_on=True),
    Text("ottla.registry.jwks.url", "", ANY, MEDIUM,
         "Where the keys are that tokens are signed with: an https, http or file URL.", acted_on=True),
    Text("ottla.registry.jwt.issuer", "", ANY, MEDIUM,
         "What a token's `iss` must be; not looked at if it is not given.", acted_on=True),
    List("ottla.registry.jwt.audience", (), Items(), MEDIUM,
         "What a token's `aud` must have one of; not looked at if it is not given.", acted_on=True),
    Text("ottla.registry.jwt.principal.claim", "sub", ANY, LOW,
         "Which claim of a token names the principal.", acted_on=True),
)


# Listeners with TLS. The rows are those of a broker's listeners.
SSL = tuple(row for row in broker.SSL if row.name.startswith("ssl."))

SECTIONS = (
    ("General", REGISTRY),
    ("Listeners with TLS", SSL),
)
