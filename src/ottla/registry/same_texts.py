"""Whether two texts under one id are one schema in two forms. Registries that share a topic write different forms.

Only the form may differ: the order of members, blanks, comments. That is enough to tell a registry that formats anew
what another has written from one that has given an id twice, and needs nothing that a schema refers to.
"""

from json import dumps, loads

from ottla.schemas.schema import DEFAULT_LIMITS, InvalidSchema


def says_the_same(kind: str, text: str, other: str) -> bool:
    """False for what cannot be read, too."""
    if kind == "PROTOBUF":
        from ottla.schemas.protobuf.schema import read_file
        from ottla.schemas.protobuf.text import canonical_text

        try:
            return canonical_text(read_file(text, DEFAULT_LIMITS)) == canonical_text(read_file(other, DEFAULT_LIMITS))
        except (InvalidSchema, ModuleNotFoundError):  # A descriptor can be read with the package protobuf alone.
            return False
    try:
        return _in_order(text) == _in_order(other)
    except (ValueError, RecursionError):
        return False


def _in_order(text: str) -> str:
    """Texts are compared, and not values: to Python `1`, `1.0` and `true` are equal."""
    return dumps(loads(text), sort_keys=True)
