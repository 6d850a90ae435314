"""A decoder as a user would write one: text, read backwards."""

from collections.abc import Mapping

import pyarrow as pa


class Backwards:
    value_type = "STRUCT<text: STRING>"

    def __init__(self, options: Mapping[str, str]) -> None:
        self._end = options["end"]

    def decode(self, values: pa.Array) -> pa.Array:
        texts = [None if value is None else value.decode()[::-1] + self._end for value in values.to_pylist()]
        structs = [None if text is None else {"text": text} for text in texts]
        return pa.array(structs, pa.struct([pa.field("text", pa.string())]))
