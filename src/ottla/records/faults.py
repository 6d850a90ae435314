"""What can be wrong with the records of a batch, in one table, so that both kernels say it in the same words.

Positions count from the first byte of the records after decompression.
"""

from typing import Final

from ottla.records.header import CorruptBatch

FIELD_CUT: Final = 1
VARINT_TOO_LONG: Final = 2
RECORD_LENGTH: Final = 3
KEY_LENGTH: Final = 4
VALUE_LENGTH: Final = 5
HEADER_COUNT: Final = 6
HEADER_KEY_LENGTH: Final = 7
HEADER_VALUE_LENGTH: Final = 8
RECORD_TOO_LONG: Final = 9
BYTES_LEFT: Final = 10
RECORD_COUNT: Final = 11

LEAST_PIECE_BYTES: Final = 1024
"""What a member, a frame or a block counts for against the limit, however little is in it: each takes its time."""

_WORDS = {
    FIELD_CUT: "it ends in the middle of a field",
    VARINT_TOO_LONG: "a variable-length integer does not end",
    RECORD_LENGTH: "its length is negative or runs past the batch",
    KEY_LENGTH: "its key runs past the record",
    VALUE_LENGTH: "its value runs past the record",
    HEADER_COUNT: "its number of headers is negative or more than its bytes can hold",
    HEADER_KEY_LENGTH: "a header's key has no length or runs past the record",
    HEADER_VALUE_LENGTH: "a header's value runs past the record",
    RECORD_TOO_LONG: "it is longer than its fields",
    BYTES_LEFT: "bytes are left after the last record",
    RECORD_COUNT: "the batch says it has a negative number of records",
}


def corrupt(fault: int, index: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"record {index}, byte {position}: {_WORDS[fault]}")


class DecompressionBomb(CorruptBatch):
    """Records that would take more memory than their reader allows for."""

    def __init__(self, codec: str, limit: int) -> None:
        super().__init__(f"{codec} data would take more than {limit} bytes once decompressed")


class BrokenCompression(CorruptBatch):
    """Bytes that the codec named in the batch's attributes cannot have written."""

    def __init__(self, codec: str, why: str) -> None:
        super().__init__(f"not {codec} data: {why}")
