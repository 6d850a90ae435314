"""The work that is done once per record, by the compiled kernel if this installation has it.

`_fast` is made from Cython where there was a compiler; `_slow` is the same in Python. Both give identical
results, down to the words of their errors, and share every test; only one of them is quick. (`PlainBatches` is a
short cut and may always say that it takes a closer look.)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.records._slow import (
        ColumnReader,
        ConsumerRecord,
        FetchedRecords,
        OffsetMap,
        PlainBatches,
        Record,
        RecordReader,
        RecordWriter,
        is_sound,
        scan,
    )
else:
    try:
        from ottla.records._fast import (
            ColumnReader,
            ConsumerRecord,
            FetchedRecords,
            OffsetMap,
            PlainBatches,
            Record,
            RecordReader,
            RecordWriter,
            is_sound,
            scan,
        )
    except ImportError:
        from ottla.records._slow import (
            ColumnReader,
            ConsumerRecord,
            FetchedRecords,
            OffsetMap,
            PlainBatches,
            Record,
            RecordReader,
            RecordWriter,
            is_sound,
            scan,
        )

__all__ = [
    "IS_COMPILED",
    "ColumnReader",
    "ConsumerRecord",
    "FetchedRecords",
    "OffsetMap",
    "PlainBatches",
    "Record",
    "RecordReader",
    "RecordWriter",
    "is_sound",
    "scan",
]

IS_COMPILED = RecordReader.__module__.endswith("_fast")
