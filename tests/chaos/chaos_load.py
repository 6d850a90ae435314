"""All programs together, from their start to the last reader, which reads every partition to its end."""

import time
from collections import Counter
from threading import Event

from ottla import Admin, NewTopic
from tests.chaos.chaos_cluster import ChaosCluster
from tests.chaos.programs import (
    PARTITIONS,
    TOPICS,
    GroupReader,
    IdempotentWriter,
    Program,
    TransactionalCopier,
    read_to_the_end,
)
from tests.chaos.recorder import Recorder

_LAST_READ_S = 120.0
_STOP_S = 90.0


class Load:
    """Two writers, and for each protocol of groups a transactional copier and a group of two readers.

    The topics are made, and the programs run when it is. `over` ends them.
    """

    def __init__(self, cluster: ChaosCluster, recorder: Recorder, seed: int) -> None:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS, 3) for topic in TOPICS]).raise_first()
        cluster.wait_until_whole()
        self.over = Event()
        self._bootstrap = cluster.bootstrap
        self._recorder = recorder
        common = cluster.bootstrap, recorder, seed, self.over
        self._programs: list[Program] = [IdempotentWriter(f"writer-{number}", *common) for number in (1, 2)]
        for protocol in ("classic", "consumer"):
            self._programs.append(TransactionalCopier(f"copier-{protocol}", *common, protocol=protocol))
            self._programs += [
                GroupReader(f"reader-{protocol}-{number}", *common, protocol=protocol) for number in (1, 2)
            ]

    def problems(self) -> Counter[str]:
        """The errors that programs were told, by name."""
        return sum((program.problems for program in self._programs), Counter())

    def finish(self) -> list[str]:
        """Stops the programs and has everything read; what went wrong with that, which ought to be nothing."""
        self.over.set()
        for program in self._programs:
            program.thread.join(_STOP_S)
        failures = [
            f"{program.name} did not end within {_STOP_S:.0f} s"
            for program in self._programs
            if program.thread.is_alive()
        ]
        late_s = time.monotonic() + _LAST_READ_S
        if not read_to_the_end(self._bootstrap, self._recorder, lambda: time.monotonic() > late_s):
            failures.append(f"the partitions cannot be read to their ends within {_LAST_READ_S:.0f} s")
        return failures
