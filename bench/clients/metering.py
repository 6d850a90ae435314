"""Processor time and memory of this process, from the moment that a meter is made."""

import resource
import time


class Meter:
    def __init__(self) -> None:
        self._began_s = time.perf_counter()
        self._cpu_s = _cpu_s()

    def read(self, records: int) -> dict[str, float]:
        """What so many records took since then."""
        elapsed_s = time.perf_counter() - self._began_s
        return {
            "rate": records / elapsed_s,
            "cpu_s_per_million": (_cpu_s() - self._cpu_s) / records * 1e6,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
