"""Quotas. The windows over which rates are measured."""

from ottla.config.bounds import at_least
from ottla.config.setting import ANY, LOW, Class, Int

SETTINGS = (
    Int("quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure a client's rate.", acted_on=True),
    Int("quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window.", acted_on=True),
    Int("replication.quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure the rate of throttled replication."),
    Int("replication.quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window."),
    Int("alter.log.dirs.replication.quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure the rate of moves between log directories."),
    Int("alter.log.dirs.replication.quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window."),
    Int("controller.quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure the rate of changes to topics and partitions (KIP-599).", acted_on=True),
    Int("controller.quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window.", acted_on=True),
    Class("client.quota.callback.class", None, ANY, LOW,
          "Class that decides clients' quotas instead of the configured ones."),
)
