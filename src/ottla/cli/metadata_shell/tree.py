"""Directories and files of the metadata. A file's text is made when somebody reads it: there may be many partitions."""

from collections.abc import Callable

File = Callable[[], str]


class Directory:
    """Named nodes. Commands go through them in the order of their names."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: "dict[str, Node]") -> None:
        self.nodes = nodes

    def names(self) -> list[str]:
        return sorted(self.nodes)


Node = Directory | File
