"""Ottla's own. Apache Kafka has no such settings; their names begin with `ottla.`."""

from ottla.config.bounds import Between, at_least
from ottla.config.setting import CLUSTER_WIDE, LOW, Int, Secret

SETTINGS = (
    Int("ottla.spin.max.us", 100, Between(0, 10_000), LOW,
        "How long the node looks for more requests before it sleeps, when the last ones came in quick succession: "
        "waking up takes a processor about as long as a request. 0 is never. A node that may use less than two "
        "processors, by its machine or by the quota of its container, never does.", acted_on=True),
    Secret("ottla.scram.salt.secret", LOW,
           "What nodes make the SCRAM salts of users that there are not of, so that nobody can tell them from those "
           "that there are. The same on all nodes: the active controller puts one into the metadata with the first "
           "user of SCRAM, if none is given.", CLUSTER_WIDE, acted_on=True),
    Int("ottla.delegation.token.max.per.owner", 1000, at_least(1), LOW,
        "Most delegation tokens of one owner; one more is refused with POLICY_VIOLATION. Every node keeps all tokens. "
        "A controller goes by its own setting.", acted_on=True),
)
