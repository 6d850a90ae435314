"""Protobuf schemas: .proto files parsed, written again, linked, and described."""

import base64

import pytest

from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.schema import Entity, InvalidSchema, Limits, parse


def proto(text: str, **references: str) -> ProtobufSchema:
    parsed = parse("PROTOBUF", text, {f"{name}.proto": one for name, one in references.items()})
    assert isinstance(parsed, ProtobufSchema)
    return parsed


ORDER = """
// What a customer wants.
syntax = "proto3";
package shop;
import 'google/protobuf/timestamp.proto';
import "google/type/money.proto";
option java_package = "com.shop";
message Order { /* with
  a comment */
  reserved 5, 7 to 9, 100 to max; reserved "old";
  string id = 0x1 [json_name="ID", deprecated = true];
  optional int32 count = 2;
  map<string, Line> lines = 3;
  oneof when { google.protobuf.Timestamp at = 4; Kind kind = 6; };
  message Line { google.type.Money price = 1; repeated Kind kinds = 2 [packed = false]; }
  enum Kind { option allow_alias = true; NONE = 0; SOME = 1; ANY = 1; reserved -5 to -2, 10; }
}
service Shop { rpc Buy(Order) returns (stream Order.Line) { option deprecated = true; }
  rpc Look(stream Order) returns (Order); }
"""

CANONICAL = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import "google/type/money.proto";

option java_package = "com.shop";

message Order {
  reserved 5, 7 to 9, 100 to max;
  reserved "old";

  string id = 1 [
    deprecated = true,
    json_name = "ID"
  ];
  optional int32 count = 2;
  map<string, Line> lines = 3;

  oneof when {
    google.protobuf.Timestamp at = 4;
    Kind kind = 6;
  }

  message Line {
    google.type.Money price = 1;
    repeated Kind kinds = 2 [packed = false];
  }
  enum Kind {
    reserved -5 to -2, 10;
    option allow_alias = true;
    NONE = 0;
    SOME = 1;
    ANY = 1;
  }
}

service Shop {
  rpc Buy (Order) returns (stream Order.Line) {
    option deprecated = true;
  };
  rpc Look (stream Order) returns (Order);
}
"""


def test_a_file_is_written_in_one_form() -> None:
    schema = proto(ORDER)
    assert schema.canonical == CANONICAL
    assert proto(CANONICAL).canonical == CANONICAL
    assert schema.name == "shop.Order"
    assert schema.names() == ("shop.Order", "shop.Order.Line")
    schema.validate()


def test_the_normal_form_has_full_names_and_the_order_of_numbers() -> None:
    shuffled = proto(
        """syntax = "proto3"; package p; import "google/type/money.proto"; import "google/protobuf/any.proto";
        message A { string b = 2; google.type.Money a = 1; oneof y { int32 z = 9; int32 c = 4; }
        oneof x { int32 d = 3; }
        enum E { N = 0; C = 2; B = 1; M = -1; } reserved 30, 20; }"""
    )
    assert shuffled.normalized == (
        'syntax = "proto3";\npackage p;\n\nimport "google/protobuf/any.proto";\nimport "google/type/money.proto";\n\n'
        "message A {\n  reserved 20;\n  reserved 30;\n\n  .google.type.Money a = 1;\n  string b = 2;\n\n"
        "  oneof x {\n    int32 d = 3;\n  }\n  oneof y {\n    int32 c = 4;\n    int32 z = 9;\n  }\n\n"
        "  enum E {\n    N = 0;\n    M = -1;\n    B = 1;\n    C = 2;\n  }\n}\n"
    )
    assert proto(shuffled.normalized).normalized == shuffled.normalized


def test_a_descriptor_in_base64_is_a_schema_too() -> None:
    schema = proto(ORDER)
    described = schema.rendered("serialized")
    again = proto(described)
    assert again.normalized == schema.normalized
    # Its text has the entry of the map as a message, so that message indexes of other clients stay what they are.
    assert "message LinesEntry {\n    option map_entry = true;" in again.canonical
    assert proto(again.canonical).message_indexes("shop.Order.LinesEntry") == (0, 1)
    again.validate()


def test_messages_are_found_by_their_indexes() -> None:
    schema = proto(ORDER)
    assert schema.message_indexes("shop.Order") == (0,)
    assert schema.message_indexes("shop.Order.Line") == (0, 0)
    assert schema.message_name((0, 0)) == "shop.Order.Line"
    for indexes in ((1,), (0, 1), (-1,)):
        with pytest.raises(InvalidSchema, match="Invalid message indexes"):
            schema.message_name(indexes)
    with pytest.raises(InvalidSchema, match=r"no message shop\.Other"):
        schema.message_indexes("shop.Other")


def test_messages_are_written_and_read_without_generated_code() -> None:
    schema = proto(ORDER)
    order = schema.message_class()(id="a", count=2, kind=1)
    order.lines["x"].price.units = 5
    again = schema.message_class("shop.Order").FromString(order.SerializeToString())
    assert again == order
    assert again.lines["x"].price.units == 5
    other = proto('syntax = "proto3"; package shop; message Order { int64 id = 1; }')
    assert other.message_class()(id=7).id == 7, "two schemas of the same names live side by side"


def test_what_is_imported_comes_from_references() -> None:
    line = 'syntax = "proto3"; package shop; message Line { int32 n = 1; }'
    order = 'syntax = "proto3"; import "line.proto"; message Order { shop.Line l = 1; }'
    schema = proto(order, line=line)
    schema.validate()
    assert ".shop.Line l = 1;" in schema.normalized
    with pytest.raises(InvalidSchema, match=r'Import "line\.proto" was not found'):
        proto(order).validate()
    with pytest.raises(InvalidSchema, match=r"Could not resolve type: shop\.Line"):
        proto(order).normalize()
    with pytest.raises(InvalidSchema, match="recursively imports itself"):
        proto('import "a.proto";', a='import "b.proto";', b='import "a.proto";').validate()


def test_a_file_that_only_imports_stands_for_the_other() -> None:
    schema = proto('syntax = "proto3"; import public "line.proto";', line='syntax = "proto3"; package s; message L {}')
    assert schema.name == "s.L"
    assert schema.message_indexes("s.L") == (0,)


def test_editions_are_read_and_written() -> None:
    text = (
        'edition = "2023";\npackage p;\n\noption features.field_presence = IMPLICIT;\n\nmessage A {\n'
        "  reserved foo, bar;\n\n"
        "  int32 a = 1 [features.field_presence = LEGACY_REQUIRED];\n  repeated int32 b = 2;\n}\n"
    )
    schema = proto(text)
    assert schema.canonical == text
    schema.validate()
    assert proto(schema.rendered("serialized")).canonical.startswith('edition = "2023";\npackage p;\n')
    for bad in ("optional int32 a = 1;", 'reserved "foo";', "group G = 1 {}"):
        with pytest.raises(InvalidSchema):
            proto(f'edition = "2023"; message A {{ {bad} }}')
    with pytest.raises(InvalidSchema, match="Unknown edition"):
        proto('edition = "1999";')


def test_proto2_has_groups_extensions_and_defaults() -> None:
    text = """\
syntax = "proto2";

message A {
  required string s = 1 [default = "a\\"b\\n"];
  optional bytes y = 2 [default = abc];
  optional double d = 3 [default = -1.5e3];
  optional E e = 4 [default = B];

  optional group Part = 5 {
    optional int32 n = 1;
  }

  extensions 100 to 199, 500 to max;

  extend A {
    optional int32 inner = 101;
  }

  enum E {
    A1 = 1;
    B = 2;
  }
}

extend A {
  repeated string outer = 100;
}
"""
    schema = proto(text)
    assert schema.canonical == text
    schema.validate()
    fields = {field.name: field.default_value for field in schema.linked.proto.message_type[0].field}
    assert fields == {"s": 'a"b\n', "y": "abc", "d": "-1500", "e": "B", "part": ""}
    assert "extend" not in schema.rendered("ignore_extensions")
    assert "extensions" not in schema.rendered("ignore_extensions")


def test_strings_keep_bytes_that_are_no_utf_8() -> None:
    schema = proto('syntax = "proto2"; message A { optional bytes y = 1 [default = "\\377\\x00\\303\\251 b"]; }')
    assert '[default = "\\377\\000é b"]' in schema.canonical
    assert schema.linked.proto.message_type[0].field[0].default_value == "\\377\\000\\303\\251 b"
    assert proto(schema.canonical).canonical == schema.canonical


CUSTOM = """
syntax = "proto2"; package c; import "google/protobuf/descriptor.proto";
message Limit { optional int32 low = 1; repeated string words = 2; optional Limit inner = 3; extensions 10 to 20; }
extend Limit { optional bool strict = 10; }
extend google.protobuf.FieldOptions { optional Limit limit = 50001; optional float ratio = 50002; }
"""


def test_custom_options_are_kept_in_text_and_in_descriptors() -> None:
    text = """syntax = "proto3"; package p; import "c.proto";
        message A {
        int32 a = 1 [(c.limit).low = 3, (c.limit).words = "x", (.c.limit).(c.strict) = true, (c.ratio) = 0.5];
        int32 b = 2 [(c.limit) = { low: 1 words: ["p", 'q'] inner < low: 2; > [c.strict]: false }]; }"""
    schema = proto(text, c=CUSTOM)
    assert "(c.limit).low = 3,\n" in schema.canonical
    assert '[(c.limit) = {\n    low: 1,\n    words: [\n      "p",\n      "q"\n    ],\n    inner: {' in schema.canonical
    joined = '(c.limit) = {\n      [c.strict]: true,\n      low: 3,\n      words: "x"\n    },\n    (c.ratio) = 0.5'
    assert joined in schema.normalized
    options = schema.linked
    made = proto(schema.rendered("serialized"), c=CUSTOM)
    assert made.canonical.startswith('syntax = "proto3";')
    content = base64.b64decode(schema.rendered("serialized"))
    assert b"\x8a\xb5\x18" in content, "the option's number, as bytes"
    assert options.descriptor("p.A").fields_by_name["a"].number == 1
    bad = proto('syntax = "proto3"; import "c.proto"; message A { int32 a = 1 [(c.limit) = 5]; }', c=CUSTOM)
    with pytest.raises(InvalidSchema, match="is a message"):
        bad.rendered("serialized")


def test_tags_are_found_and_changed() -> None:
    text = """syntax = "proto3"; package p; import "confluent/meta.proto";
        message A { option (confluent.message_meta).tags = "T";
        oneof o { string s = 1 [(confluent.field_meta) = { tags: ["P", "Q"], doc: "d" }]; }
        message B { int32 n = 1; } }"""
    schema = proto(text)
    assert schema.tagged_entities() == {
        Entity("A", "sr_record"): ("T",),
        Entity("A.s", "sr_field"): ("P", "Q"),
    }
    changed = schema.with_tags({Entity("A.B.n", "sr_field"): ["N"]}, {Entity("A.o.s", "sr_field"): ["P"]})
    assert changed.tags() == ("T", "Q", "N")
    assert 'doc: "d",' in changed.canonical
    changed.validate()
    with pytest.raises(InvalidSchema, match="No matching Message with name 'C'"):
        schema.with_tags({Entity("C", "sr_record"): ["N"]}, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message A {", "Reached end of input in message definition"),
        ("message A { int32 a = 1; }", 'Expected "required", "optional", or "repeated".'),
        ('syntax = "proto3"; message A { required int32 a = 1; }', "Required fields are not allowed in proto3."),
        ('syntax = "proto4";', 'Unrecognized syntax identifier "proto4".'),
        ('syntax = "proto3"; message A { int32 a = 0; }', "Field numbers must be from 1 to 536870911, not 0."),
        ('syntax = "proto3"; message A { int32 a = 536870912; }', "Field numbers must be from 1 to 536870911"),
        ('syntax = "proto3"; message A {} message A {}', '"A" is already defined.'),
        ('syntax = "proto3"; message A { repeated map<int32, int32> m = 1; }', "not allowed on map fields"),
        ('syntax = "proto3"; message A { oneof o { repeated int32 a = 1; } }', "Fields in oneofs must not have labels"),
        ('syntax = "proto3"; message A { reserved foo; }', "Reserved names must be string literals."),
        ('syntax = "proto3"; message A { reserved 5 to 3; }', "Range end must be greater than start number."),
        ('syntax = "proto3"; enum E { A = 2147483648; }', "Integer out of range."),
        ("package a; package b;", "Multiple package definitions."),
        ('import "a"; import "a";', 'Import "a" was listed twice.'),
        ('syntax = "proto3"; message A { string a = 1 [json_name = 5]; }', "Expected string for JSON name."),
        ('message A { optional string a = 1 [default = "x\ny"]; }', "String literals cannot cross line boundaries."),
        ("/* never", "End-of-file inside block comment."),
        ("message A { optional int32 a = 1x; }", "Need space between number and identifier."),
        ("message é {}", "Interpreting non ascii codepoint"),
        ("option a = -b;", "Invalid '-' symbol before identifier."),
        ('option a = "\\z";', "Invalid escape sequence in string literal."),
        ('option a = "\\ud800";', "Invalid escape sequence in string literal."),
        ("hello", "Expected top-level statement"),
    ],
)
def test_what_is_no_file_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        proto(text)
    assert raised.value.reason.startswith(reason) or reason in raised.value.reason


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }',
        'syntax = "proto3"; message A { int32 a = 1; int32 a = 2; }',
        'syntax = "proto3"; message A { Nowhere a = 1; }',
        'syntax = "proto3"; enum E { A = 1; }',
        'syntax = "proto3"; message A { map<float, int32> m = 1; }',
        'syntax = "proto2"; message A { optional int32 a = 1 [default = 2147483648]; }',
        'syntax = "proto2"; message A { optional bool a = 1 [default = 1]; }',
        'syntax = "proto3"; message A { int32 a = 1 [deprecated = 5]; }',
        'syntax = "proto3"; message A { int32 a = 1 [nonsense = 5]; }',
        'syntax = "proto3"; service S { rpc A (Nowhere) returns (Nowhere); }',
    ],
)
def test_what_cannot_be_linked_is_parsed_and_not_valid(text: str) -> None:
    schema = proto(text)
    with pytest.raises(InvalidSchema):
        schema.validate()


def test_a_fault_says_where_it_is() -> None:
    with pytest.raises(InvalidSchema) as raised:
        proto('syntax = "proto3";\nmessage A {\n  int32 a 1;\n}')
    assert (raised.value.reason, raised.value.path) == ('Expected "=".', "line 3, column 11")


def test_a_descriptor_cannot_say_more_than_a_name() -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    hostile = FileDescriptorProto(name="x", syntax="proto3")
    hostile.message_type.add(name='A {} message B { option x = "')
    with pytest.raises(InvalidSchema, match="is not a valid identifier"):
        proto(base64.b64encode(hostile.SerializeToString()).decode())


def test_a_file_beyond_a_limit_is_refused_at_once() -> None:
    with pytest.raises(InvalidSchema, match="nested deeper"):
        proto('syntax = "proto3";' + "message A {" * 200 + "}" * 200)
    with pytest.raises(InvalidSchema, match="nested deeper"):
        proto("option a = " + "{a:" * 200 + "1" + "}" * 200 + ";")
    with pytest.raises(InvalidSchema, match="more than 10 messages"):
        parse("PROTOBUF", "".join(f"message M{n} {{}}" for n in range(11)), limits=Limits(definitions=10))
