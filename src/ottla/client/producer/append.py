"""The work that is done once per sent record, by the compiled module if this installation has it.

`_slow_append` is the same in Python and says what is expected; both share every test. The compiled one writes straight
into the kernel's batches, so it is used only together with the compiled kernel.
"""

from typing import TYPE_CHECKING

from ottla.records.kernel import IS_COMPILED

if TYPE_CHECKING or not IS_COMPILED:
    from ottla.client.producer._slow_append import (
        Appender,
        Delivery,
        OnDelivery,
        OpenBatches,
        murmur2,
        partition_for_key,
        partitions_for_column,
        put,
    )
else:
    from ottla.client.producer._fast_append import (
        Appender,
        Delivery,
        OpenBatches,
        murmur2,
        partition_for_key,
        partitions_for_column,
        put,
    )

    OnDelivery = object

__all__ = [
    "IS_COMPILED",
    "Appender",
    "Delivery",
    "OnDelivery",
    "OpenBatches",
    "murmur2",
    "partition_for_key",
    "partitions_for_column",
    "put",
]
