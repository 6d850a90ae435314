"""Schemas of records: Avro, Protobuf and JSON Schema, parsed, rendered, compared, and compiled for decoding. Pure.

    schema              what a schema is to everybody else: `parse`, `ParsedSchema`, `InvalidSchema`, `Limits`, rules
    levels              NONE to FULL_TRANSITIVE: which versions of a subject are compared, and the messages
    avro, protobuf, json_schema     the formats
    json_text           JSON, read within limits and written as Java writes it
    faults              what goes wrong with values
    serializing         serializers: values to framed records and back
    registry_port       what serializers ask of a registry; its clients are above this room

The serializers are here under short names (`ottla.schemas.Avro`), and are loaded when they are first named.
Everything else: import from the modules, each costs what it needs.
"""

TYPE_CHECKING = False  # type checkers take it for true; `typing` would load a dozen modules

if TYPE_CHECKING:
    from typing import Any

    from ottla.schemas.faults import CannotDecode as CannotDecode
    from ottla.schemas.faults import CannotEncode as CannotEncode
    from ottla.schemas.schema import InvalidSchema as InvalidSchema
    from ottla.schemas.schema import ParsedSchema as ParsedSchema
    from ottla.schemas.schema import parse as parse
    from ottla.schemas.serializing.avro import AsyncAvro as AsyncAvro
    from ottla.schemas.serializing.avro import Avro as Avro
    from ottla.schemas.serializing.json import AsyncJson as AsyncJson
    from ottla.schemas.serializing.json import Json as Json
    from ottla.schemas.serializing.protobuf import AsyncProtobuf as AsyncProtobuf
    from ottla.schemas.serializing.protobuf import Protobuf as Protobuf

_PUBLIC = {
    "AsyncAvro": "ottla.schemas.serializing.avro",
    "AsyncJson": "ottla.schemas.serializing.json",
    "AsyncProtobuf": "ottla.schemas.serializing.protobuf",
    "Avro": "ottla.schemas.serializing.avro",
    "CannotDecode": "ottla.schemas.faults",
    "CannotEncode": "ottla.schemas.faults",
    "InvalidSchema": "ottla.schemas.schema",
    "Json": "ottla.schemas.serializing.json",
    "ParsedSchema": "ottla.schemas.schema",
    "Protobuf": "ottla.schemas.serializing.protobuf",
    "parse": "ottla.schemas.schema",
}
"""Where each public name is."""


def __getattr__(name: str) -> "Any":
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ottla.schemas' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_PUBLIC[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
