"""The head of a run in a generated decoder: a variable-length field whose length is known and whose content is next."""

from ottla.wire import layout, schema
from ottla.wire.source import Source


class Head:
    """`place` is where the value goes, `length` the variable that holds its length as it was on the wire."""

    def __init__(self, field: schema.Field, place: str, length: str, nullable: bool, flexible: bool) -> None:
        self.place = place
        self.length = length
        self.nullable = nullable
        self.flexible = flexible
        self.bias = 1 if flexible else 0
        self.is_text = field.type == "string" and not field.is_array
        self.element = layout.FORMATS[field.type] if field.is_array else "s"

    def read_small(self, source: Source, formats: str, places: list[str]) -> None:
        """Content and the run after it, in one call from the table."""
        table = source.bind(layout.unpackers(self.element, self.bias, formats), "table")
        unpack = f"{table}[{self.length}](buffer, position)"
        after = "".join(f", {place}" for place in places)
        if self.element != "s":
            source.line(f"values = {unpack}")
            if not places:
                source.line(f"{self.place} = values")
            elif len(places) == 1:
                source.line(f"{self.place} = values[:-1]")
                source.line(f"{places[0]} = values[-1]")
            else:
                source.line(f"{self.place} = values[:-{len(places)}]")
                source.line(f"{after[2:]} = values[-{len(places)}:]")
        elif self.is_text:
            source.line(f"text{after or ','} = {unpack}")
            source.line(f"{self.place} = text.decode()")
        else:
            source.line(f"{self.place}{after or ','} = {unpack}")
        element_width = 1 if self.element == "s" else layout.width(self.element)
        scaled = self.length if element_width == 1 else f"{element_width} * {self.length}"
        source.line(f"position += {scaled} + ({layout.width(formats)} - {self.bias * element_width})")

    def read_any(self, source: Source) -> None:
        """Content alone, of any length, by a checked slow path."""
        if self.element != "s":
            call = f"read_numbers(buffer, position, {self.length}, {self.element!r})"
        else:
            call = f"{'read_text' if self.is_text else 'read_bytes'}(buffer, position, {self.length})"
        source.line(f"{self.place}, position = {call}")
