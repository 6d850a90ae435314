"""Whether values of one JSON Schema are valid by another: Confluent's rules.

Everything hangs on what a schema says of properties that it does not name, its content model:

| model | additionalProperties | a property that is added | a property that is removed |
| --- | --- | --- | --- |
| open | absent, or true | may have been there before, with another type: refused, unless LENIENT | is still allowed |
| partly open | a schema, or patternProperties | must be what that schema allows | must be what that schema allows |
| closed | false | could not have been there: fine | is not allowed any more: refused |

Two shapes are walked at once. A pair that was looked at gives what it gave; one that is met inside itself is taken for
compatible, and if it turns out not to be, everything is looked at once more with that known.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from ottla.schemas.json_schema.shapes import (
    Array,
    Combined,
    Const,
    Empty,
    Enum,
    Never,
    Not,
    Number,
    Object,
    Shape,
    String,
    resolved,
)
from ottla.schemas.json_text import same_json, sorted_json, write_json
from ottla.schemas.schema import Incompatibility, InvalidSchema, Limits, Policy, Rule

MOST_INCOMPATIBILITIES: Final = 1_000

_ADDED = "The keyword at path '{path}' in the %s schema is not present in the %s schema"
_MORE = "The value at path '{path}' in the %s schema is more than its value in the %s schema"
_LESS = "The value at path '{path}' in the %s schema is less than its value in the %s schema"
_OTHER = "The value at path '{path}' is different between the %s and %s schema"
_FEWER = "An array or combined type at path '{path}' has fewer elements in the %s schema than the %s schema"
_MORE_PARTS = "An array or combined type at path '{path}' has more elements in the %s schema than the %s schema"
_TYPE = "A type at path '{path}' is different between the %s schema and the %s schema"
_TO_OPEN = (
    "The %s schema has an open content model and has a property or item at path '{path}' "
    "which is missing in the %s schema"
)
_TO_UNOPEN = (
    "The %s schema has an unopen content model and has a required property at path '{path}' "
    "which is missing in the %s schema"
)
_FROM_CLOSED = (
    "The %s has a closed content model and is missing a property or item present at path '{path}' in the %s schema"
)
_REMOVED_UNCOVERED = (
    "A property or item is missing in the %s schema but present at path '{path}' in the %s schema "
    "and is not covered by its partially open content model"
)
_ADDED_UNCOVERED = (
    "The %s schema has a property or item at path '{path}' which is missing in the %s schema "
    "and is not covered by its partially open content model"
)

_BOUNDS: Final = (
    ("MAX_LENGTH", "maxLength", "max"),
    ("MIN_LENGTH", "minLength", "min"),
    ("MAXIMUM", "maximum", "max"),
    ("MINIMUM", "minimum", "min"),
    ("EXCLUSIVE_MAXIMUM", "exclusiveMaximum", "max"),
    ("EXCLUSIVE_MINIMUM", "exclusiveMinimum", "min"),
    ("MAX_PROPERTIES", "maxProperties", "max"),
    ("MIN_PROPERTIES", "minProperties", "min"),
    ("MAX_ITEMS", "maxItems", "max"),
    ("MIN_ITEMS", "minItems", "min"),
    ("MAX_CONTAINS", "maxContains", "max"),
    ("MIN_CONTAINS", "minContains", "min"),
)


def _bound_rules() -> Iterable[Rule]:
    for name, keyword, side in _BOUNDS:
        tighter, looser = ("DECREASED", "INCREASED") if side == "max" else ("INCREASED", "DECREASED")
        yield Rule(f"{name}_ADDED", f"`{keyword}` is new", False, _ADDED, "Values beyond it may have been written.")
        yield Rule(
            f"{name}_{tighter}",
            f"`{keyword}` allows less",
            False,
            _LESS if side == "max" else _MORE,
            "Values in between may have been written.",
        )
        yield Rule(f"{name}_REMOVED", f"`{keyword}` is gone", True, "", "More is valid.")
        yield Rule(f"{name}_{looser}", f"`{keyword}` allows more", True, "", "More is valid.")


_OPEN_WHY = "A property of that name may have been written before, with any value. Close the model, or use LENIENT."

RULES: Final = (
    Rule("TYPE_CHANGED", "a type is another one", False, _TYPE, "Values of the old type are not valid."),
    Rule(
        "TYPE_NARROWED", "`number` has become `integer`", False, _TYPE, "Numbers with decimals may have been written."
    ),
    Rule("TYPE_EXTENDED", "`integer` has become `number`", True, "", "Every integer is a number."),
    Rule("SCHEMA_ADDED", "something that had no schema has one", False, "", "Anything may have been written there."),
    Rule("SCHEMA_REMOVED", "something that had a schema has none", True, "", "Anything is valid there."),
    Rule("ID_CHANGED", "`$id` is another", True, "", "It is a name only."),
    Rule("TITLE_CHANGED", "`title` is another", True, "", "It is for people."),
    Rule("DESCRIPTION_CHANGED", "`description` is another", True, "", "It is for people."),
    Rule("DEFAULT_CHANGED", "`default` is another", True, "", "It makes nothing valid or invalid."),
    *_bound_rules(),
    Rule("PATTERN_ADDED", "`pattern` is new", False, _ADDED, "Other strings may have been written."),
    Rule("PATTERN_CHANGED", "`pattern` is another", False, _OTHER, "Patterns are not compared, only their texts."),
    Rule("PATTERN_REMOVED", "`pattern` is gone", True, "", "More is valid."),
    Rule("MULTIPLE_OF_ADDED", "`multipleOf` is new", False, _ADDED, "Other numbers may have been written."),
    Rule("MULTIPLE_OF_EXPANDED", "`multipleOf` is a multiple of the old", False, _MORE, "Fewer numbers are valid."),
    Rule("MULTIPLE_OF_CHANGED", "`multipleOf` is no divisor of the old", False, _OTHER, "Other numbers are valid."),
    Rule("MULTIPLE_OF_REDUCED", "`multipleOf` divides the old", True, "", "More numbers are valid."),
    Rule("MULTIPLE_OF_REMOVED", "`multipleOf` is gone", True, "", "More is valid."),
    Rule("REQUIRED_ATTRIBUTE_ADDED", "a property is required now", False, _ADDED, "Values without it are not valid."),
    Rule(
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "a property with a `default` is required now",
        True,
        "",
        "Readers put the default in.",
    ),
    Rule("REQUIRED_ATTRIBUTE_REMOVED", "a property is not required any more", True, "", "More is valid."),
    Rule("DEPENDENCY_ARRAY_ADDED", "a property needs others now", False, _ADDED, "It may have been written alone."),
    Rule("DEPENDENCY_ARRAY_EXTENDED", "a property needs more others", False, _MORE_PARTS, "They may be missing."),
    Rule("DEPENDENCY_ARRAY_CHANGED", "a property needs other ones", False, _OTHER, "They may be missing."),
    Rule("DEPENDENCY_ARRAY_NARROWED", "a property needs fewer others", True, "", "More is valid."),
    Rule("DEPENDENCY_ARRAY_REMOVED", "a property needs no others any more", True, "", "More is valid."),
    Rule("DEPENDENCY_SCHEMA_ADDED", "a property brings a schema with it now", False, _ADDED, "Values may not fit."),
    Rule("DEPENDENCY_SCHEMA_REMOVED", "a property brings no schema any more", True, "", "More is valid."),
    Rule(
        "ADDITIONAL_PROPERTIES_REMOVED",
        "`additionalProperties` is false now",
        False,
        _ADDED,
        "Properties without a name in the schema may have been written.",
        True,
    ),
    Rule(
        "ADDITIONAL_PROPERTIES_NARROWED",
        "`additionalProperties` has a schema now",
        False,
        _FEWER,
        "Other properties may have been written.",
        True,
    ),
    Rule("ADDITIONAL_PROPERTIES_ADDED", "`additionalProperties` is not false any more", True, "", "More is valid."),
    Rule("ADDITIONAL_PROPERTIES_EXTENDED", "`additionalProperties` has no schema any more", True, "", "More is valid."),
    Rule(
        "UNEVALUATED_PROPERTIES_REMOVED",
        "`unevaluatedProperties` is false now",
        False,
        _ADDED,
        "Properties without a name in the schema may have been written.",
        True,
    ),
    Rule(
        "UNEVALUATED_PROPERTIES_NARROWED",
        "`unevaluatedProperties` has a schema now",
        False,
        _FEWER,
        "Other properties may have been written.",
        True,
    ),
    Rule("UNEVALUATED_PROPERTIES_ADDED", "`unevaluatedProperties` is not false any more", True, "", "More is valid."),
    Rule(
        "UNEVALUATED_PROPERTIES_EXTENDED", "`unevaluatedProperties` has no schema any more", True, "", "More is valid."
    ),
    Rule(
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "a required property is new in an open model",
        False,
        _TO_OPEN,
        "Values without it are not valid.",
    ),
    Rule(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "a required property with a `default` is new in an open model",
        False,
        _TO_OPEN,
        _OPEN_WHY,
        True,
    ),
    Rule(
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "an optional property is new in an open model",
        False,
        _TO_OPEN,
        _OPEN_WHY,
        True,
    ),
    Rule(
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "a property that may be anything is new in an open model",
        True,
        "",
        "It could be anything before.",
    ),
    Rule(
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "a required property is new in a model that is not open",
        False,
        _TO_UNOPEN,
        "Values without it are not valid. Give it a `default`.",
    ),
    Rule(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "a required property with a `default` is new in a model that is not open",
        True,
        "",
        "Readers put the default in.",
    ),
    Rule(
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "an optional property is new in a model that is not open",
        True,
        "",
        "It could not have been there before.",
    ),
    Rule(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a property is new in a partly open model, and is not what the model allowed",
        False,
        _ADDED_UNCOVERED,
        "What the model allowed may have been written.",
        True,
    ),
    Rule(
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a property is new in a partly open model, and is what the model allowed",
        True,
        "",
        "It was valid before.",
    ),
    Rule("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", "a property is gone from an open model", True, "", "Still valid."),
    Rule(
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "a property is gone from a closed model",
        False,
        _FROM_CLOSED,
        "Values that have it are not valid. Keep it, or open the model first.",
        True,
    ),
    Rule(
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "a property that could never be is gone",
        True,
        "",
        "Nobody has written it.",
    ),
    Rule(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a property is gone, and is not what the partly open model allows",
        False,
        _REMOVED_UNCOVERED,
        "Values that have it are not valid.",
        True,
    ),
    Rule(
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a property is gone, and is what the partly open model allows",
        True,
        "",
        "Still valid.",
    ),
    Rule("UNIQUE_ITEMS_ADDED", "`uniqueItems` is true now", False, _ADDED, "Equal items may have been written."),
    Rule("UNIQUE_ITEMS_REMOVED", "`uniqueItems` is not true any more", True, "", "More is valid."),
    Rule("ADDITIONAL_ITEMS_REMOVED", "there may be no further items", False, _ADDED, "They may have been written."),
    Rule(
        "ADDITIONAL_ITEMS_NARROWED", "further items have a schema now", False, _FEWER, "Others may have been written."
    ),
    Rule("ADDITIONAL_ITEMS_ADDED", "there may be further items", True, "", "More is valid."),
    Rule("ADDITIONAL_ITEMS_EXTENDED", "further items have no schema any more", True, "", "More is valid."),
    Rule("UNEVALUATED_ITEMS_REMOVED", "`unevaluatedItems` is false now", False, _ADDED, "They may have been written."),
    Rule("UNEVALUATED_ITEMS_NARROWED", "`unevaluatedItems` has a schema now", False, _FEWER, "Others may be there."),
    Rule("UNEVALUATED_ITEMS_ADDED", "`unevaluatedItems` is not false any more", True, "", "More is valid."),
    Rule("UNEVALUATED_ITEMS_EXTENDED", "`unevaluatedItems` has no schema any more", True, "", "More is valid."),
    Rule(
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "a place of a tuple has a schema now", False, _TO_OPEN, "It was anything."
    ),
    Rule(
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "a place of a tuple is named, and may be anything",
        True,
        "",
        "It could be anything before.",
    ),
    Rule("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", "a closed tuple has one more place", True, "", "It was never there."),
    Rule(
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a tuple has one more place, which is not what further items were",
        False,
        _ADDED_UNCOVERED,
        "What they were may have been written.",
    ),
    Rule(
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a tuple has one more place, which is what further items were",
        True,
        "",
        "It was valid before.",
    ),
    Rule("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", "an open tuple has one place less", True, "", "Still valid."),
    Rule(
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", "a closed tuple has one place less", False, _FROM_CLOSED, "Too long."
    ),
    Rule(
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "a place of a tuple that could never be is gone",
        True,
        "",
        "Nobody has written it.",
    ),
    Rule(
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a tuple has one place less, which is not what further items are",
        False,
        _REMOVED_UNCOVERED,
        "Values that have it are not valid.",
    ),
    Rule(
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "a tuple has one place less, which is what further items are",
        True,
        "",
        "Still valid.",
    ),
    Rule("ENUM_ARRAY_EXTENDED", "`enum` has more values", True, "", "More is valid."),
    Rule("ENUM_ARRAY_NARROWED", "`enum` has fewer values", False, _FEWER, "The others may have been written."),
    Rule(
        "ENUM_ARRAY_CHANGED", "`enum` or `const` has other values", False, _TYPE, "The old ones may have been written."
    ),
    Rule("COMBINED_TYPE_EXTENDED", "`allOf` or `oneOf` has become `anyOf`", True, "", "More is valid."),
    Rule("COMBINED_TYPE_CHANGED", "`anyOf` has become `oneOf` or `allOf`, or the like", False, _TYPE, "Less is valid."),
    Rule(
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "parts of a combination are others",
        False,
        _TYPE,
        "No part fits an old one.",
    ),
    Rule("PRODUCT_TYPE_EXTENDED", "`allOf` has more parts", False, _MORE_PARTS, "Values may not fit the new ones."),
    Rule("PRODUCT_TYPE_NARROWED", "`allOf` has fewer parts", True, "", "More is valid."),
    Rule("SUM_TYPE_EXTENDED", "`anyOf` or `oneOf` has more parts", True, "", "More is valid."),
    Rule("SUM_TYPE_NARROWED", "`anyOf` or `oneOf` has fewer parts", False, _FEWER, "The others may have been written."),
    Rule("NOT_TYPE_EXTENDED", "`not` excludes more", False, _MORE_PARTS, "Excluded values may have been written."),
    Rule("NOT_TYPE_NARROWED", "`not` excludes less", True, "", "More is valid."),
)
"""Every change that Confluent has a name for. The page docs/registry/compatibility.md is made of it."""

_BY_ID: Final = {rule.id: rule for rule in RULES}

_Found = tuple[tuple[Rule, str], ...]
"""Rules that refuse, with paths from the pair that was compared."""


def incompatibilities(reader: Shape, writer: Shape, policy: Policy, limits: Limits) -> list[Incompatibility]:
    """Why values of the writer may not be valid for the reader; empty if they are."""
    known_bad: dict[tuple[int, int], _Found] = {}
    looked_at = 0
    while True:
        comparison = _Comparison(policy, limits, known_bad, looked_at)
        found = comparison.pair(writer, reader)
        bad = {pair: why for pair, why in comparison.memo.items() if why}
        if not comparison.took_for_granted or bad.keys() <= known_bad.keys():
            return [_incompatibility(rule, path) for rule, path in found[:MOST_INCOMPATIBILITIES]]
        # What is bad stays bad: another walk may not come by it, and would find something new for ever.
        known_bad = known_bad | bad
        looked_at = comparison.looked_at


def _incompatibility(rule: Rule, path: str) -> Incompatibility:
    where = f"#/{path}"
    message = f'{{errorType:"{rule.id}", description:"{rule.message.replace("{path}", where)}\'}}'
    return Incompatibility(rule, where, message)


class _Comparison:
    """One walk. The writer is the old schema, the reader the new one, whichever was registered first."""

    def __init__(
        self, policy: Policy, limits: Limits, known_bad: dict[tuple[int, int], _Found], looked_at: int
    ) -> None:
        self._is_lenient = policy == "LENIENT"
        self._limits = limits
        self._known_bad = known_bad
        self.looked_at = looked_at
        self.took_for_granted = False
        self.memo: dict[tuple[int, int], _Found] = {}
        self._open: set[tuple[int, int]] = set()
        self._kept: list[Shape] = []

    def refused(self, rule_id: str, path: str = "") -> _Found:
        rule = _BY_ID[rule_id]
        if rule.compatible or (self._is_lenient and rule.compatible_if_lenient):
            return ()
        return ((rule, path),)

    def pair(self, old: Shape | None, new: Shape | None) -> _Found:
        if old is None or new is None:
            return () if new is None else self.refused("SCHEMA_ADDED")
        old, new = resolved(old), resolved(new)
        pair = (id(old), id(new))
        if pair in self.memo:
            return self.memo[pair]
        if pair in self._open:
            if pair in self._known_bad:
                return self._known_bad[pair]
            self.took_for_granted = True
            return ()
        self.looked_at += 1
        if self.looked_at > self._limits.comparisons:
            raise InvalidSchema(f"a comparison would look at more than {self._limits.comparisons} pairs of schemas")
        if len(self._open) > self._limits.type_depth:
            raise InvalidSchema(f"schemas lie deeper than {self._limits.type_depth} within each other")
        self._kept += (old, new)  # so that no other gets their ids
        self._open.add(pair)
        found = self._shapes(old, new)[:MOST_INCOMPATIBILITIES]
        self._open.discard(pair)
        self.memo[pair] = found
        return found

    def at(self, path: str, found: _Found) -> _Found:
        return tuple((rule, f"{path}/{inner}" if inner else path) for rule, inner in found)

    def _shapes(self, old: Shape, new: Shape) -> _Found:
        if isinstance(new, Combined) and not isinstance(old, Combined):
            if len(new.shapes) == 1:
                if not self.pair(old, new.shapes[0]):
                    return ()
            elif new.criterion != "allOf" and any(not self.pair(old, one) for one in new.shapes):
                return ()
        elif isinstance(old, Combined) and not isinstance(new, Combined):
            if len(old.shapes) == 1:
                if not self.pair(old.shapes[0], new):
                    return ()
            elif old.criterion == "allOf" and any(not self.pair(one, new) for one in old.shapes):
                return ()
        if type(old) is not type(new):
            if isinstance(old, Never) or isinstance(new, Empty) or old.connect_type == "bytes" == new.connect_type:
                return ()
            return self.refused("TYPE_CHANGED")
        compare = _COMPARISONS.get(type(old))
        return compare(self, old, new) if compare is not None else ()

    def _bounds(self, old: Any, new: Any, *names: str) -> _Found:
        found: _Found = ()
        for name, keyword, side in _BOUNDS:
            attribute = name.lower()
            if name not in names:
                continue
            before, after = getattr(old, attribute), getattr(new, attribute)
            if before == after:
                continue
            if before is None:
                found += self.refused(f"{name}_ADDED", keyword)
            elif after is not None and ((after < before) if side == "max" else (after > before)):
                found += self.refused(f"{name}_{'DECREASED' if side == 'max' else 'INCREASED'}", keyword)
        return found

    def strings(self, old: String, new: String) -> _Found:
        found = self._bounds(old, new, "MAX_LENGTH", "MIN_LENGTH")
        if new.pattern is not None and old.pattern != new.pattern:
            found += self.refused("PATTERN_ADDED" if old.pattern is None else "PATTERN_CHANGED", "pattern")
        return found

    def numbers(self, old: Number, new: Number) -> _Found:
        found = self._bounds(old, new, "MAXIMUM", "MINIMUM", "EXCLUSIVE_MAXIMUM", "EXCLUSIVE_MINIMUM")
        before, after = old.multiple_of, new.multiple_of
        if before != after and after is not None:
            if before is None:
                found += self.refused("MULTIPLE_OF_ADDED", "multipleOf")
            elif _divides(before, after):
                found += self.refused("MULTIPLE_OF_EXPANDED", "multipleOf")
            elif not _divides(after, before):
                found += self.refused("MULTIPLE_OF_CHANGED", "multipleOf")
        if new.is_integer and not old.is_integer:
            found += self.refused("TYPE_NARROWED")
        return found

    def constants(self, old: Const, new: Const) -> _Found:
        return () if same_json(old.value, new.value) else self.refused("ENUM_ARRAY_CHANGED", "const")

    def enums(self, old: Enum, new: Enum) -> _Found:
        before, after = _distinct(old.values), _distinct(new.values)
        if before <= after:
            return ()
        return self.refused("ENUM_ARRAY_NARROWED" if after <= before else "ENUM_ARRAY_CHANGED", "enum")

    def negations(self, old: Not, new: Not) -> _Found:
        return self.refused("NOT_TYPE_EXTENDED", "not") if self.pair(new.shape, old.shape) else ()

    def combinations(self, old: Combined, new: Combined) -> _Found:
        found: _Found = ()
        if old.criterion != new.criterion:
            extended = (
                new.criterion == "anyOf"
                or (len(old.shapes) == 1 and len(new.shapes) == 1)
                or (len(old.shapes) == 1 and new.criterion == "oneOf")
                or (len(new.shapes) == 1 and old.criterion == "allOf")
            )
            if not extended:
                return self.refused("COMBINED_TYPE_CHANGED")
        olds = list({one.key: one for one in old.shapes}.values())
        news = list({one.key: one for one in new.shapes}.values())
        if len(olds) < len(news) and new.criterion == "allOf":
            found += self.refused("PRODUCT_TYPE_EXTENDED")
        elif len(olds) > len(news) and old.criterion != "allOf":
            found += self.refused("SUM_TYPE_NARROWED")
        fits = [[place for place, one in enumerate(news) if not self.pair(before, one)] for before in olds]
        if _matched(fits, len(news)) < min(len(olds), len(news)):
            found += self.refused("COMBINED_TYPE_SUBSCHEMAS_CHANGED")
        return found

    # Objects.

    def objects(self, old: Object, new: Object) -> _Found:
        found: _Found = ()
        for name in old.properties:
            if name in new.properties and name in new.required and name not in old.required:
                has_default = new.properties[name].has_default
                rule = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if has_default else "REQUIRED_ATTRIBUTE_ADDED"
                found += self.refused(rule, f"required/{name}")
        for name in dict.fromkeys((*old.properties, *new.properties)):
            path = f"properties/{name}"
            before, after = old.properties.get(name), new.properties.get(name)
            if after is None:
                assert before is not None
                found += self.at(path, self._property_removed(name, before, new))
            elif before is None:
                found += self.at(path, self._property_added(name, after, old, new))
            else:
                found += self.at(path, self.pair(before, after))
        found += self._dependencies(old, new)
        found += self.at("additionalProperties", self._additional(old, new, "PROPERTIES"))
        found += self.at("unevaluatedProperties", self._unevaluated(old, new, "PROPERTIES"))
        return found + self._bounds(old, new, "MAX_PROPERTIES", "MIN_PROPERTIES")

    def _property_removed(self, name: str, before: Shape, new: Object) -> _Found:
        if _is_open(new) and not new.patterns:
            return ()
        covering = _covering(new, name)
        if covering is not None:
            why = self.pair(before, covering)
            return why + self.refused("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL") if why else ()
        return () if isinstance(before, Never) else self.refused("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")

    def _property_added(self, name: str, after: Shape, old: Object, new: Object) -> _Found:
        with_default = "_WITH_DEFAULT" if after.has_default else ""
        if _is_open(old) and not old.patterns:
            if isinstance(after, Empty):
                return ()
            if name in new.required:
                return self.refused(f"REQUIRED_PROPERTY{with_default}_ADDED_TO_OPEN_CONTENT_MODEL")
            return self.refused("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL")
        found: _Found = ()
        covering = _covering(old, name)
        if covering is not None:
            why = self.pair(covering, after)
            if why:
                found += why + self.refused("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
        if name in new.required:
            found += self.refused(f"REQUIRED_PROPERTY{with_default}_ADDED_TO_UNOPEN_CONTENT_MODEL")
        return found

    def _dependencies(self, old: Object, new: Object) -> _Found:
        found: _Found = ()
        for name, needed in new.dependent_names.items():
            path = f"dependencies/{name}"
            before = old.dependent_names.get(name)
            if before is None:
                found += self.refused("DEPENDENCY_ARRAY_ADDED", path)
            elif needed > before:
                found += self.refused("DEPENDENCY_ARRAY_EXTENDED", path)
            elif not needed <= before:
                found += self.refused("DEPENDENCY_ARRAY_CHANGED", path)
        for name, shape in new.dependent_shapes.items():
            path = f"dependencies/{name}"
            if name in old.dependent_shapes:
                found += self.at(path, self.pair(old.dependent_shapes[name], shape))
            else:
                found += self.refused("DEPENDENCY_SCHEMA_ADDED", path)
        return found

    def _additional(self, old: Object | Array, new: Object | Array, what: str) -> _Found:
        if old.permits_additional != new.permits_additional:
            return () if new.permits_additional else self.refused(f"ADDITIONAL_{what}_REMOVED")
        if old.additional is None and new.additional is not None:
            return self.refused(f"ADDITIONAL_{what}_NARROWED")
        if new.additional is None:
            return ()
        return self.pair(old.additional, new.additional)

    def _unevaluated(self, old: Object | Array, new: Object | Array, what: str) -> _Found:
        before, after = old.unevaluated, new.unevaluated
        if after is None:
            return ()
        if isinstance(after, Never) and not isinstance(before, Never):
            return self.refused(f"UNEVALUATED_{what}_REMOVED")
        if before is None or (isinstance(before, Empty) and not isinstance(after, Empty)):
            return self.refused(f"UNEVALUATED_{what}_NARROWED")
        if isinstance(before, Never) or isinstance(after, Empty):
            return ()
        return self.pair(before, after)

    # Arrays.

    def arrays(self, old: Array, new: Array) -> _Found:
        found = self.at("items", self.pair(old.all_items, new.all_items))
        olds, news = old.items or [], new.items or []
        for place, before in enumerate(olds):
            path = f"items/{place}"
            if place < len(news):
                found += self.at(path, self.pair(before, news[place]))
            else:
                found += self.at(path, self._item_removed(before, new))
        for place in range(len(olds), len(news)):
            found += self.at(f"items/{place}", self._item_added(news[place], old))
        found += self.at("additionalItems", self._additional(old, new, "ITEMS"))
        found += self.at("unevaluatedItems", self._unevaluated(old, new, "ITEMS"))
        found += self._bounds(old, new, "MAX_ITEMS", "MIN_ITEMS")
        if new.unique and not old.unique:
            found += self.refused("UNIQUE_ITEMS_ADDED", "uniqueItems")
        return found + self._bounds(old, new, "MAX_CONTAINS", "MIN_CONTAINS")

    def _item_removed(self, before: Shape, new: Array) -> _Found:
        if _is_open(new):
            return ()
        covering = _rest(new)
        if covering is not None:
            why = self.pair(before, covering)
            return why + self.refused("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL") if why else ()
        return () if isinstance(before, Never) else self.refused("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")

    def _item_added(self, after: Shape, old: Array) -> _Found:
        if _is_open(old):
            return () if isinstance(after, Empty) else self.refused("ITEM_ADDED_TO_OPEN_CONTENT_MODEL")
        covering = _rest(old)
        if covering is None:
            return ()
        why = self.pair(covering, after)
        return why + self.refused("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL") if why else ()


_COMPARISONS: Final[dict[type[Shape], Callable[[_Comparison, Any, Any], _Found]]] = {
    String: _Comparison.strings,
    Number: _Comparison.numbers,
    Const: _Comparison.constants,
    Enum: _Comparison.enums,
    Not: _Comparison.negations,
    Combined: _Comparison.combinations,
    Object: _Comparison.objects,
    Array: _Comparison.arrays,
}


def _is_open(shape: Object | Array) -> bool:
    """Whether what the schema does not name may be anything. Of an object, patterns are the caller's affair."""
    if not shape.permits_additional or shape.additional is not None:
        return False
    return shape.unevaluated is None or isinstance(shape.unevaluated, Empty)


def _covering(shape: Object, name: str) -> Shape | None:
    """The schema of properties that are not named, for one of this name."""
    for pattern, one in shape.patterns.items():
        if matches(pattern, name):
            return one
    return _rest(shape)


def _rest(shape: Object | Array) -> Shape | None:
    if shape.additional is not None:
        return shape.additional
    if shape.permits_additional and shape.unevaluated is not None and not isinstance(shape.unevaluated, Never | Empty):
        return shape.unevaluated
    return None


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text, in linear time. One that `re2` cannot read matches nothing: then what it
    would have covered is taken for not covered, and refused."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options).search(text) is not None
    except re2.error:
        return False


def _divides(one: Decimal, other: Decimal) -> bool:
    """Whether `other` is a multiple of `one`."""
    from decimal import Context

    if one == 0:
        return False
    context = Context(prec=2_100, Emin=-999_999, Emax=999_999)
    return context.remainder(other, one) == 0


def _distinct(values: list[Any]) -> set[str]:
    """Values of JSON as something that can be in a set: their texts, so that 1, 1.0 and true are three."""
    return {write_json(sorted_json(value)) for value in values}


def _matched(fits: list[list[int]], count: int) -> int:
    """How many of the old parts can each have a new one of its own that fits: the largest matching of a bipartite
    graph."""
    taken_by: list[int | None] = [None] * count

    def found(start: int) -> bool:
        # Looks for a way from `start` to a free part, over parts that could be exchanged; without recursion.
        came_from: dict[int, int] = {}
        todo = [start]
        while todo:
            old = todo.pop()
            for new in fits[old]:
                if new in came_from:
                    continue
                came_from[new] = old
                holder = taken_by[new]
                if holder is None:
                    place: int | None = new
                    while place is not None:
                        mover = came_from[place]
                        before = next((one for one, by in enumerate(taken_by) if by == mover), None)
                        taken_by[place] = mover
                        place = before
                    return True
                todo.append(holder)
        return False

    return sum(found(start) for start in range(len(fits)))
