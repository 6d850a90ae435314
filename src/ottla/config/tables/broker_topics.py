"""New topics. What a topic gets that is created without saying."""

from ottla.config.bounds import at_least
from ottla.config.setting import ANY, HIGH, MEDIUM, Flag, Int

SETTINGS = (
    Flag("auto.create.topics.enable", True, ANY, HIGH,
         "Whether a topic that a client asks for is created when it does not exist.", acted_on=True),
    Int("num.partitions", 1, at_least(1), MEDIUM,
        "Partitions of a topic that is created without a number of its own.", acted_on=True),
    Int("default.replication.factor", 1, ANY, MEDIUM,
        "Replicas of a topic that is created without a number of its own.", acted_on=True),
)
