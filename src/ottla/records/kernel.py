"""The work that is done once per record, by the compiled kernel if this installation has it.

`_fast` is made from Cython where there was a compiler; `_slow` is the same in Python. Both give identical
results, down to the words of their errors, and share every test; only one of them is quick.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.records._slow import ColumnReader, OffsetMap, Record, RecordReader, RecordWriter, scan
else:
    try:
        from ottla.records._fast import ColumnReader, OffsetMap, Record, RecordReader, RecordWriter, scan
    except ImportError:
        from ottla.records._slow import ColumnReader, OffsetMap, Record, RecordReader, RecordWriter, scan

__all__ = ["IS_COMPILED", "ColumnReader", "OffsetMap", "Record", "RecordReader", "RecordWriter", "scan"]

IS_COMPILED = RecordReader.__module__.endswith("_fast")
