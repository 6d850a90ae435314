"""How many files and connections the node may have open.

Every connection is a descriptor, and so is every file of a log that is in use; Kafka's documentation asks for 100,000.
Many systems give a process 1,024 and let it take more for the asking, as Java's virtual machine does of itself.
"""

import resource


def raise_descriptor_limit() -> int:
    """Takes as many descriptors as the system lets this process have; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # macOS calls it unlimited and then refuses that.
    return hard
