"""Python source under construction: indented lines, and the objects they refer to by generated names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of one function. `show` gives the text, `compile` the function."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = 0
        self._bound: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append(" " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Everything emitted inside is indented below `opening`."""
        self.line(opening)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, prefix: str) -> str:
        """A name for a local variable that nothing else in this function uses."""
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, value: Any, prefix: str) -> str:
        """A name by which the source can refer to `value`; the same one each time."""
        if id(value) not in self._names:
            name = self._names[id(value)] = self.name(prefix)
            self._bound[name] = value
        return self._names[id(value)]

    def show(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, label: str, known: dict[str, Any]) -> Any:
        """Runs the source, with `known` and all bound objects as its globals, and returns one function of it."""
        namespace = {**known, **self._bound}
        exec(compile(self.show(), f"<{label}>", "exec"), namespace)
        return namespace[function]
