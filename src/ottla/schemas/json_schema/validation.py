"""Values held against a JSON Schema, by the package jsonschema-rs.

Nothing is fetched: a reference that was not given is an error when the schema is compiled. Patterns run in linear
time; a schema with one that cannot (a look-ahead, a reference to a group) is compiled with a limit on how often it
may go back.
"""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import OttlaError
from ottla.schemas.json_text import read_json, write_json
from ottla.schemas.schema import InvalidSchema, Limits

MOST_STEPS_BACK = 10_000


class InvalidValue(OttlaError, ValueError):
    """A value is not what its schema allows. `path` says where in it."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(f"{reason} (at {path or 'the root'})")
        self.reason = reason
        self.path = path


class Validation:
    """A compiled schema."""

    def __init__(self, tree: Any, references: Mapping[str, str], draft: int, limits: Limits) -> None:
        import jsonschema_rs

        drafts = {
            4: jsonschema_rs.Draft4Validator,
            6: jsonschema_rs.Draft6Validator,
            7: jsonschema_rs.Draft7Validator,
            2019: jsonschema_rs.Draft201909Validator,
            2020: jsonschema_rs.Draft202012Validator,
        }
        known = {name: _plain(read_json(text, limits, decimals=True)) for name, text in references.items()}

        def given(uri: str) -> Any:
            for name in (uri, uri.rpartition("/")[2], uri.removeprefix("json-schema:///")):
                if name in known:
                    return known[name]
            raise ValueError(f"nothing is fetched, and no reference has the name {uri}")

        plain = _plain(tree)
        try:
            for options in (
                jsonschema_rs.RegexOptions(size_limit=1 << 20),
                jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_STEPS_BACK),
            ):
                try:
                    self._validator = drafts[draft](plain, retriever=given, pattern_options=options)
                    return
                except jsonschema_rs.ValidationError as error:
                    if "regex" not in str(error):
                        raise
                    last = error
            raise last
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise InvalidSchema(str(error).split("\n")[0]) from None

    def check(self, value: Any) -> None:
        """Raises `InvalidValue` with the first thing that is wrong."""
        if self._validator.is_valid(value):
            return
        for error in self._validator.iter_errors(value):
            raise InvalidValue(error.message, "/".join(map(str, error.instance_path)))


def _plain(tree: Any) -> Any:
    """Decimals as floats, since that is what the library knows. Nothing else changes."""
    import json

    return json.loads(write_json(tree))
