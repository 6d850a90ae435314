import subprocess
import sys

PORTIONS = """
import resource, sys
from ottla.base.freed_memory import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
filling = b"x" * 1000

def portion():
    return [filling + b"%d" % number for number in range(500)]

portion()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    portion()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _pages_handed_out(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PORTIONS, how], capture_output=True, check=True).stdout)


def test_portions_of_records_are_freed_and_made_without_asking_the_system_for_pages() -> None:
    assert _pages_handed_out("keep") * 10 < _pages_handed_out("leave")
