"""What the names in .proto files mean: every type and extension of a file and of what it imports, by full name.

A name without a dot before it is looked for in the message where it stands, then in the one around it, and so on out to
the package and its parents. Files that every schema may import are known without being imported, as in Confluent's
registry: text of long ago may lack the import.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.schemas.protobuf.elements import Enum, Extend, Field, File, Group, Message
from ottla.schemas.protobuf.well_known import WELL_KNOWN, well_known_file
from ottla.schemas.schema import InvalidSchema


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A type: where it is, and in which file."""

    full_name: str
    type: Message | Enum
    package: str
    file_name: str
    """The name it is imported by; empty for the file itself."""

    @property
    def local_name(self) -> str:
        """Without the package."""
        return self.full_name[len(self.package) + 1 :] if self.package else self.full_name


class Names:
    """All types and extensions that a file may name. `files` are those that were given for its imports."""

    def __init__(self, file: File, files: Mapping[str, File]) -> None:
        self._types: dict[str, Definition] = {}
        self._extensions: dict[str, tuple[Field, str]] = {}
        self._collected: set[str] = set()
        for name, one in files.items():
            self._collect(one, name)
        self._collect(file, "")
        for name in self._imports((file, *files.values())):
            if name not in files and name in WELL_KNOWN:
                self._collect_well_known(name)
        self._files = files

    @staticmethod
    def _imports(files: Iterable[File]) -> Iterable[str]:
        return (name for one in files for name in (*one.import_order, *one.option_imports))

    def _collect_well_known(self, name: str) -> None:
        if name in self._collected or name not in WELL_KNOWN:
            return
        self._collected.add(name)
        file = well_known_file(name)
        self._collect(file, name)
        for imported in file.import_order:
            self._collect_well_known(imported)

    def _collect(self, file: File, file_name: str) -> None:
        package = file.package or ""
        self._collected.add(file_name)
        self._collect_extends(file.extends, package, package, file_name)
        todo: list[tuple[str, Message | Enum]] = [(package, one) for one in file.types]
        while todo:
            scope, type = todo.pop()
            name = f"{scope}.{type.name}" if scope else type.name
            self._types[name] = Definition(name, type, package, file_name)
            if isinstance(type, Message):
                self._collect_extends(type.extends, name, package, file_name)
                todo += ((name, one) for one in type.types)
                todo += ((name, group.message) for group in _groups(type))

    def _collect_extends(self, extends: list[Extend], scope: str, package: str, file_name: str) -> None:
        for extend in extends:
            for field in extend.fields:
                self._extensions[f"{scope}.{field.name}" if scope else field.name] = (field, scope)
            for group in extend.groups:
                name = f"{scope}.{group.name}" if scope else group.name
                self._types[name] = Definition(name, group.message, package, file_name)
                self._extensions[f"{scope}.{group.name.lower()}".lstrip(".")] = (
                    Field(group.label, group.name, group.name.lower(), group.number),
                    scope,
                )

    def definition(self, full_name: str) -> Definition | None:
        return self._types.get(full_name)

    def find_type(self, written: str, scope: str) -> Definition | None:
        """What a name stands for where `scope` is around it, or None."""
        found = _found(self._types, written, scope)
        if found is None and written.lstrip(".").startswith(("google.", "confluent.", "protobuf.", "type.")):
            for name in sorted(WELL_KNOWN):
                self._collect_well_known(name)
            found = _found(self._types, written, scope)
        return self._types[found] if found is not None else None

    def type_name(self, written: str, scope: str) -> str:
        found = self.find_type(written, scope)
        if found is None:
            raise InvalidSchema(f"Could not resolve type: {written}", scope)
        return found.full_name

    def extension_name(self, written: str, scope: str) -> str | None:
        found = _found(self._extensions, written, scope)
        if found is None and written.lstrip(".").startswith("confluent."):
            self._collect_well_known("confluent/meta.proto")
            found = _found(self._extensions, written, scope)
        return found

    def field_of_extension(self, full_name: str) -> tuple[Field, str] | None:
        return self._extensions.get(full_name)

    def message(self, full_name: str) -> Message | None:
        found = self._types.get(full_name)
        return found.type if found is not None and isinstance(found.type, Message) else None

    def map_entry(self, full_name: str) -> tuple[str, str, str] | None:
        message = self.message(full_name)
        if message is None or not message.is_map_entry:
            return None
        types = {field.name: field.type for field in message.fields}
        if "key" not in types or "value" not in types:
            return None
        return types["key"], types["value"], full_name


def _found(known: Mapping[str, object], written: str, scope: str) -> str | None:
    """The full name of what is written, from the innermost scope outwards."""
    if written.startswith("."):
        return written[1:] if written[1:] in known else None
    while scope:
        if (name := f"{scope}.{written}") in known:
            return name
        scope = scope.rpartition(".")[0]
    return written if written in known else None


def _groups(message: Message) -> list[Group]:
    return [*message.groups, *(group for oneof in message.oneofs for group in oneof.groups)]
