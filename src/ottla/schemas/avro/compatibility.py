"""Whether data of one Avro schema can be read with another: the rules of Apache Avro 1.12, in its order.

It walks both schemas at once, as Java's `SchemaCompatibility` does, and remembers each pair of types that it has looked
at. A pair that is met again gives what it gave before, paths included, and one that is met inside itself is taken for
compatible. Both show in the messages, which clients compare, so they are kept.
"""

from typing import Final

from ottla.schemas.avro.types import (
    Array,
    AvroType,
    DeeperThan,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
    all_types,
)
from ottla.schemas.json_text import utf_16_order
from ottla.schemas.schema import Incompatibility, InvalidSchema, Limits, Rule

MOST_INCOMPATIBILITIES: Final = 1_000
"""A type that is used in many places counts in each, and types in types multiply. The rest is not reported."""

NAME_MISMATCH: Final = Rule(
    "NAME_MISMATCH",
    "a record, enum or fixed has another name, and no alias is the writer's full name",
    False,
    "The name of the schema has changed (path '{path}')",
    "Readers find named types by name. Only the last part of the name counts; add the old name to `aliases`.",
)
FIXED_SIZE_MISMATCH: Final = Rule(
    "FIXED_SIZE_MISMATCH",
    "a fixed has another size",
    False,
    "The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema",
    "A reader would take too many bytes or too few, and everything after them would be wrong.",
)
MISSING_ENUM_SYMBOLS: Final = Rule(
    "MISSING_ENUM_SYMBOLS",
    "the writer's enum has symbols that the reader's has not, and the reader's enum has no default",
    False,
    "The %s schema is missing enum symbols '{info}' at path '{path}' in the %s schema",
    "The reader has no value for such a symbol. Give its enum a `default`.",
)
READER_FIELD_MISSING_DEFAULT_VALUE: Final = Rule(
    "READER_FIELD_MISSING_DEFAULT_VALUE",
    "the reader's record has a field that the writer's has not, and it has no default",
    False,
    "The field '{info}' at path '{path}' in the %s schema has no default value and is missing in the %s schema",
    "The reader has no value for the field. Give it a `default`, or an alias if it was only renamed.",
)
TYPE_MISMATCH: Final = Rule(
    "TYPE_MISMATCH",
    "a type is another one, and no promotion leads from the writer's to the reader's",
    False,
    "The type (path '{path}') of a field in the %s schema does not match with the %s schema",
    "Promotions are: int to long, float, double; long to float, double; float to double; string to bytes and back.",
)
MISSING_UNION_BRANCH: Final = Rule(
    "MISSING_UNION_BRANCH",
    "the reader's union has no branch for a type that the writer may write",
    False,
    "The %s schema is missing a type inside a union field at path '{path}' in the %s schema",
    "A value of that branch could not be read. Add the branch, or keep it.",
)
AMBIGUOUS_FIELD: Final = Rule(
    "AMBIGUOUS_FIELD",
    "a field of the reader matches several fields of the writer, by its name and its aliases",
    False,
    "Unexpected exception during compatibility check: {info}",
    "Which of them it would be read from is not defined.",
)

RULES: Final = (
    NAME_MISMATCH,
    FIXED_SIZE_MISMATCH,
    MISSING_ENUM_SYMBOLS,
    READER_FIELD_MISSING_DEFAULT_VALUE,
    TYPE_MISMATCH,
    MISSING_UNION_BRANCH,
    AMBIGUOUS_FIELD,
    Rule("FIELD_REMOVED", "the writer's record has a field that the reader's has not", True, "", "It is skipped."),
    Rule("FIELD_WITH_DEFAULT", "the reader's record has a new field with a default", True, "", "The default is read."),
    Rule(
        "FIELD_RENAMED", "a field has another name, and the old one among its aliases", True, "", "Aliases are names."
    ),
    Rule("FIELDS_REORDERED", "fields are in another order", True, "", "They are found by name."),
    Rule(
        "NAMESPACE_CHANGED", "a named type is in another namespace", True, "", "Only the last part of the name counts."
    ),
    Rule("PROMOTION", "a type has become a wider one", True, "", TYPE_MISMATCH.why),
    Rule("SYMBOL_ADDED", "the reader's enum has a new symbol", True, "", "The writer does not write it."),
    Rule(
        "SYMBOL_REMOVED",
        "the reader's enum lacks symbols, and has a default",
        True,
        "",
        "They are read as the default.",
    ),
    Rule("BRANCH_ADDED", "the reader's union has a new branch", True, "", "The writer does not write it."),
    Rule("MADE_A_UNION", "a type has become a union with it", True, "", "Values are read as that branch."),
    Rule(
        "LOGICAL_TYPE_CHANGED",
        "a logical type, its precision or scale is another",
        True,
        "",
        "Avro compares bytes only.",
    ),
    Rule(
        "DOC_OR_PROPERTY_CHANGED", "docs, orders, properties, aliases or defaults changed", True, "", "No bytes change."
    ),
)
"""Every change that there is a word for, those that are no problem too. The page docs/registry/compatibility.md is
made of it."""

_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def incompatibilities(reader: AvroType, writer: AvroType, limits: Limits) -> list[Incompatibility]:
    """Why data of the writer cannot be read; empty if it can."""
    try:
        return _Comparison(reader, limits).compared(reader, writer)
    except _Ambiguous as ambiguous:
        return [_incompatibility(AMBIGUOUS_FIELD, [""], str(ambiguous))]


class _Ambiguous(Exception):
    """Java raises here and loses what it has found before; Confluent's registry then says only this."""


class _Comparison:
    """Walks two schemas. A location is the way from the root: its first element stands for the root itself."""

    def __init__(self, reader: AvroType, limits: Limits) -> None:
        self._has_field_aliases = any(
            field.aliases for one in all_types(reader) if isinstance(one, Record) for field in one.fields
        )
        self._found: dict[tuple[int, int], list[Incompatibility] | None] = {}
        self._unfit: set[tuple[int, int]] = set()
        self._deeper = DeeperThan(limits.type_depth)
        self._most = limits.comparisons

    def compared(self, reader: AvroType, writer: AvroType) -> list[Incompatibility]:
        """From a root of its own: Java begins the location anew for the branches of unions."""
        return self._pair(reader, writer, [""])

    def _pair(self, reader: AvroType, writer: AvroType, location: list[str]) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair in self._found:
            return self._found[pair] or []
        if pair in self._unfit:
            location = [""]  # It was met as a branch, from a root of its own.
        self._count()
        self._found[pair] = None
        with self._deeper:
            found = self._calculated(reader, writer, location)[:MOST_INCOMPATIBILITIES]
        self._found[pair] = found
        return found

    def _count(self) -> None:
        if len(self._found) + len(self._unfit) >= self._most:
            raise InvalidSchema(f"a comparison would look at more than {self._most} pairs of types")

    def _calculated(self, reader: AvroType, writer: AvroType, location: list[str]) -> list[Incompatibility]:
        if reader.kind != writer.kind:
            return self._different_kinds(reader, writer, location)
        if isinstance(reader, Array):
            assert isinstance(writer, Array)
            return self._pair(reader.items, writer.items, [*location, "items"])
        if isinstance(reader, Map):
            assert isinstance(writer, Map)
            return self._pair(reader.values, writer.values, [*location, "values"])
        if isinstance(reader, Union):
            assert isinstance(writer, Union)
            return self._unions(reader, writer, location)
        if isinstance(reader, Named):
            assert isinstance(writer, Named)
            return self._names(reader, writer, location) + self._named(reader, writer, location)
        return []

    def _different_kinds(self, reader: AvroType, writer: AvroType, location: list[str]) -> list[Incompatibility]:
        if isinstance(writer, Union):
            found: list[Incompatibility] = []
            for index, branch in enumerate(writer.branches):
                found += self._pair(reader, branch, [*location, str(index)])
            return found
        if isinstance(reader, Union):
            if any(self._fits(branch, writer) for branch in reader.branches):
                return []
            return [
                _incompatibility(MISSING_UNION_BRANCH, location, f"reader union lacking writer type: {_kind(writer)}")
            ]
        if writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return []
        message = f"reader type: {_kind(reader)} not compatible with writer type: {_kind(writer)}"
        return [_incompatibility(TYPE_MISMATCH, location, message)]

    def _fits(self, branch: AvroType, writer: AvroType) -> bool:
        """Whether a branch can read the writer's type. Most cannot for their name or kind alone, and then no more is
        worked out than that: it is if the same pair is met elsewhere. With aliases of fields it is always worked out,
        because Java may find there that one is ambiguous."""
        pair = (id(branch), id(writer))
        if pair not in self._found:
            if branch.kind != writer.kind:
                cannot = (
                    not isinstance(writer, Union)
                    and not isinstance(branch, Union)
                    and writer.kind not in _PROMOTIONS.get(branch.kind, ())
                )
            else:
                cannot = isinstance(branch, Named) and isinstance(writer, Named) and not _is_named_alike(branch, writer)
            if cannot and not self._has_field_aliases:
                self._unfit.add(pair)
                self._count()
                return False
        return not self.compared(branch, writer)

    def _unions(self, reader: Union, writer: Union, location: list[str]) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        for index, branch in enumerate(writer.branches):
            if self.compared(reader, branch):
                message = f"reader union lacking writer type: {_kind(branch)}"
                found.append(_incompatibility(MISSING_UNION_BRANCH, [*location, str(index)], message))
        return found

    def _names(self, reader: Named, writer: Named, location: list[str]) -> list[Incompatibility]:
        if _is_named_alike(reader, writer):
            return []
        return [_incompatibility(NAME_MISMATCH, [*location, "name"], f"expected: {writer.full_name}")]

    def _named(self, reader: Named, writer: Named, location: list[str]) -> list[Incompatibility]:
        if isinstance(reader, Fixed):
            assert isinstance(writer, Fixed)
            if reader.size == writer.size:
                return []
            message = f"expected: {writer.size}, found: {reader.size}"
            return [_incompatibility(FIXED_SIZE_MISMATCH, [*location, "size"], message)]
        if isinstance(reader, Enum):
            assert isinstance(writer, Enum)
            missing = sorted(set(writer.symbols) - set(reader.symbols), key=utf_16_order)
            if not missing or reader.default is not None:
                return []
            return [_incompatibility(MISSING_ENUM_SYMBOLS, [*location, "symbols"], f"[{', '.join(missing)}]")]
        assert isinstance(reader, Record)
        assert isinstance(writer, Record)
        return self._fields(reader, writer, [*location, "fields"])

    def _fields(self, reader: Record, writer: Record, location: list[str]) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        for field in reader.fields:
            here = [*location, str(field.position)]
            written = _written_field(field, writer)
            if written is not None:
                found += self._pair(field.type, written.type, [*here, "type"])
            elif not field.has_default:
                if isinstance(field.type, Enum) and field.type.default is not None:
                    found += self._pair(field.type, writer, [*here, "type"])
                else:
                    found.append(_incompatibility(READER_FIELD_MISSING_DEFAULT_VALUE, here, field.name))
            if len(found) > MOST_INCOMPATIBILITIES:
                break
        return found


def _is_named_alike(reader: Named, writer: Named) -> bool:
    return reader.name == writer.name or (bool(reader.aliases) and writer.full_name in reader.alias_names())


def _written_field(field: Field, writer: Record) -> Field | None:
    """The field that is read as this one, by its name and its aliases."""
    found = [writer.by_name[name] for name in (field.name, *field.aliases) if name in writer.by_name]
    if len(found) > 1:
        shown = f"{field.name} type:{_kind(field.type)} pos:{field.position}"
        raise _Ambiguous(
            f"Reader record field {shown} matches multiple fields in writer record schema {_shown(writer)}"
        )
    return found[0] if found else None


def _shown(writer: Record) -> str:
    from ottla.schemas.avro.text import java_text

    return java_text(writer)


def _kind(type: AvroType) -> str:
    return type.kind.upper()


def _incompatibility(rule: Rule, location: list[str], info: str) -> Incompatibility:
    path = "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in location[1:])
    description = rule.message.replace("{path}", path).replace("{info}", info)
    if rule is AMBIGUOUS_FIELD:
        return Incompatibility(rule, path, description)
    message = f"{{errorType:'{rule.id}', description:'{description}', additionalInfo:'{info}'}}"
    return Incompatibility(rule, path, message)
