"""Dead letters as rows: what `value.onError=deadLetter` has put aside, written with the sink like anything else.

The source marks and sends nothing, so a record is a dead letter as often as a job writes it: once, if one query does.
"""

from typing import TYPE_CHECKING, Any, Final

from ottla.spark.options import OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COLUMN: Final = "deadLetter"
_OF_THE_SINK: Final = ("topic", "key", "value", "headers")


def split_dead_letters(frame: "DataFrame") -> "tuple[DataFrame, DataFrame]":
    """The rows that could be decoded, and the dead letters as the sink takes them: topic, key, value, headers.

    Each is a DataFrame that reads the source. In two queries, each has every record once, and its own checkpoint.
    """
    letters = frame.where(_letter(frame).isNotNull()).select([f"{_COLUMN}.{name}" for name in _OF_THE_SINK])
    return frame.where(_letter(frame).isNull()).drop(_COLUMN), letters


def records_and_dead_letters(
    frame: "DataFrame",
    *,
    topic: "Column | str",
    value: "Column | str",
    key: "Column | str | None" = None,
    headers: "Column | str | None" = None,
    where: "Column | str | None" = None,
) -> "DataFrame":
    """A row for each record, as the sink takes it: of `topic`, `key`, `value` and `headers`, or its dead letter.

    `topic` is a name, or a column. The others are columns or expressions of `frame`: `"to_json(value)"`. Records for
    which `where` does not hold are left out; dead letters never are. One query writes both, in one transaction.
    """
    from pyspark.sql import functions

    def column(given: "Column | str | None", type_: str) -> "Column":
        if given is None:
            return functions.lit(None).cast(type_)
        return (functions.expr(given) if isinstance(given, str) else given).cast(type_)

    letter = _letter(frame)
    struct: Any = frame.schema[_COLUMN].dataType
    of_headers = struct["headers"].dataType.simpleString()
    wanted = {
        "topic": functions.lit(topic) if isinstance(topic, str) else topic,
        "key": column(key, "binary"),
        "value": column(value, "binary"),
        "headers": column(headers, of_headers),
    }
    kept = frame if where is None else frame.where(letter.isNotNull() | column(where, "boolean"))
    return kept.select(
        [
            functions.when(letter.isNull(), made).otherwise(functions.col(f"{_COLUMN}.{name}")).alias(name)
            for name, made in wanted.items()
        ]
    )


def _letter(frame: "DataFrame") -> "Column":
    if _COLUMN not in frame.columns:
        raise OptionError(
            f"the DataFrame has no column {_COLUMN}: read it with the options value.onError=deadLetter and "
            "value.deadLetterTopic, and select the column along with others"
        )
    return frame[_COLUMN]
