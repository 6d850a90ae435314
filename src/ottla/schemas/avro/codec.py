"""Avro values from bytes and to bytes, by the compiled twin if this installation has it.

`_fast` is made from Cython where there was a compiler; `_slow` is the same in Python. Both give identical results,
down to the words of their errors, and share every test; only one of them is quick.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.schemas.avro._slow import Decoder, Duration, Encoder
else:
    from ottla.schemas.avro._slow import Duration

    try:
        from ottla.schemas.avro._fast import Decoder, Encoder
    except ImportError:
        from ottla.schemas.avro._slow import Decoder, Encoder

__all__ = ["IS_COMPILED", "Decoder", "Duration", "Encoder"]

IS_COMPILED = Decoder.__module__.endswith("_fast")
