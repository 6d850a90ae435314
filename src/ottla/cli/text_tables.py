"""Tables with a tab after each cell, as Kafka's tools with sub-commands print them."""

from collections.abc import Iterator, Sequence


def tabbed_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns are as wide as their widest cell."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        yield "".join(f"{cell:{width}}\t" for cell, width in zip(row, widths, strict=True))
