"""Our transforms and predicates beside Kafka Connect's, on random records, a batch of several each."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.data.columns import AnyColumn, Column, Schemaless
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.transforms.by_name import PREDICATES, TRANSFORMS, make_predicate, make_transform
from tests.interop.connect.connect_oracle import RandomData, asked, carried, unpacked

pytestmark = pytest.mark.interop

FRACTION = re.compile(rb"-?\d+\.\d+(?:[eE][+-]?\d+)?")
SEED = 20261118
BATCHES = 40
PACKAGE = "org.apache.kafka.connect.transforms."
KAFKAS = [kind for kind in TRANSFORMS if kind.class_name.startswith(PACKAGE)]

LITERALS = (
    *(
        "42",
        "-129",
        "+7",
        "40000",
        "3e10",
        "1.5",
        "-.5",
        "1e40",
        "1e400",
        "0",
        "-0",
        "0.0",
        "9223372036854775808",
        "007",
        "1_0",
    ),
    *(
        "true",
        " false ",
        "null",
        "nullable",
        "",
        " ",
        "it is",
        "a:b",
        "[1,300]",
        '["a", "b:c"]',
        "[1, 2.5]",
        "[1, a]",
        "[1",
    ),
    *(
        '{"a":1,"b":2000}',
        "{1:2 3:4}",
        '{"a":[1,2]}',
        "{a:1}",
        '[{"a":1}]',
        "[[1],[2]]",
        "[true,false]",
        '"quoted"',
        "[1,,2]",
    ),
    *(
        "2026-11-18",
        "12:34:56.789Z",
        "2026-11-18T12:34:56.789Z",
        "2026-13-40",
        '["2026-11-18"]',
        "2026-11-1x",
        "[null,1]",
    ),
)
"""For InsertHeader. `[]`, entries of several kinds, and nulls alone have schemas in Kafka that it cannot write."""

OPTIONS: dict[str, list[dict[str, str]]] = {
    "Cast": [{"spec": kind} for kind in ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")]
    + [
        {"spec": "a:int8,b:int64,c:string"},
        {"spec": "a:float32, b : BOOLEAN ,c:float64", "replace.null.with.default": "false"},
        {"spec": "d:int32,e:int16,f:string"},
        {"spec": "a:string,b:string,d:boolean,e:float32,f:float64"},
    ],
    "InsertHeader": [{"header": "one", "value.literal": literal} for literal in LITERALS],
    "TimestampConverter": [
        {"target.type": kind, "format": "yyyy-MM-dd'T'HH:mm:ss.SSS", "unix.precision": precision} | field
        for kind in ("string", "unix", "Date", "Time", "Timestamp")
        for precision in ("seconds", "milliseconds", "microseconds", "nanoseconds")
        for field in ({}, {"field": "a"}, {"field": "b", "replace.null.with.default": "false"})
    ],
    "TimestampRouter": [
        {},
        {"topic.format": "${timestamp}_${topic}_${topic}", "timestamp.format": "yyyy-MM-dd'T'HH:mm:ss.SSSX"},
        {"topic.format": "x${timestamp}", "timestamp.format": "YYYY'w'w EEEE MMM D h a G"},
    ],
    "DropHeaders": [{"headers": "one,one"}, {"headers": "one,two"}],
    "ExtractField": [{"field": "a"}, {"field": "a", "replace.null.with.default": "false"}]
    + [{"field": path, "field.syntax.version": "V2"} for path in ("a.b", "b", "c.a")],
    "Filter": [{}],
    "Flatten": [{}, {"delimiter": "_"}],
    "HeaderFrom": [
        {"fields": "a,b", "headers": "h,i", "operation": "copy"},
        {"fields": "a", "headers": "h", "operation": "move"},
    ],
    "HoistField": [{"field": "a"}],
    "InsertField": [
        {"topic.field": "t", "partition.field": "p!", "offset.field": "o?", "timestamp.field": "ts"},
        {"static.field": "s", "static.value": "v", "replace.null.with.default": "false"},
        {"static.field": "a", "static.value": "v"},
    ],
    "MaskField": [{"fields": "a,b"}, {"fields": "a,b", "replacement": "42"}, {"fields": "a", "replacement": "x"}],
    "RegexRouter": [
        {"regex": "(\\w+)-(.*)", "replacement": "$2_$1"},
        {"regex": "(?<x>sh)op.*", "replacement": "${x}-\\$"},
        {"regex": "other", "replacement": "no"},
    ],
    "ReplaceField": [
        {"exclude": "a"},
        {"include": "a,b"},
        {"renames": "a:z,b:y"},
        {"include": "a,b", "exclude": "b", "renames": "a:b", "replace.null.with.default": "false"},
        {"renames": "a:b"},
    ],
    "SetSchemaMetadata": [{"schema.name": "n"}, {"schema.version": "3"}, {"schema.name": "n", "schema.version": "4"}],
    "ValueToKey": [{"fields": "a"}, {"fields": "b,a", "replace.null.with.default": "false"}],
}


class TellingData(RandomData):
    """Texts that are numbers and dates now and then."""

    def text(self, least: int = 0) -> str:
        random = self.random
        match random.randrange(6):
            case 0:
                return str(random.randrange(-(1 << 63), 1 << 63) >> random.randrange(64))
            case 1:
                return random.choice(
                    ["1e3", " 1.5 ", "-0.1f", "NaN", "-Infinity", "0x1.8p3", "+7", "1_0", "TRUE", "9" * 30]
                )
            case 2:
                return random.choice(
                    [
                        "2026-11-18T01:02:03.004",
                        "1970-1-1T0:0:0.0Z",
                        "1500-02-29T24:61:00.5",
                        "2026-11-18",
                        "12345-01-01T00:00:00.0",
                    ]
                )
            case 3:
                return f"{random.uniform(-1, 1) * 10.0 ** random.randrange(-50, 50)}"
        return super().text(least)


def random_part(data: RandomData, length: int) -> AnyColumn:
    kind = data.random.randrange(10)
    if kind == 0:
        return Schemaless((None,) * length)
    if kind <= 3:
        schema = data.struct(depth=1)
        return Schemaless(tuple(data.random.choice([None, without_schema(data, schema)]) for _ in range(length)))
    schema = data.schema() if kind == 4 else data.struct()
    schema = schema.but(optional=data.random.random() < 0.4)
    return column_of(schema, [data.value(schema) for _ in range(length)])


def without_schema(data: RandomData, schema: Schema) -> Any:
    """What a map without a schema may be: what JSON can say."""
    made: dict[str, Any] = {}
    for field in schema.fields:
        kind = data.random.randrange(6)
        made[field.name] = [None, 5, "x", True, [1, None], {"a": 1, "b": {"c": None}}][kind]
    return made


def random_records(data: RandomData) -> Records:
    length = data.random.randrange(1, 4)
    headers = [
        [
            (data.random.choice(["one", "two", "three"]), Schema(Type.STRING), data.text())
            for _ in range(data.random.randrange(3))
        ]
        for _ in range(length)
    ]
    return records_of(
        data.random.choice(["shop-orders", "shop", "a.b"]),
        random_part(data, length),
        random_part(data, length),
        timestamps=[data.random.randrange(1 << 40) for _ in range(length)],
        partitions=[data.random.randrange(9) for _ in range(length)],
        headers=headers,
    ).but(offset=pa.array([data.random.randrange(1 << 40) for _ in range(length)], pa.int64()))


def said(records: Records) -> list[dict[str, Any]]:
    """As records travel."""
    keys, values = carried(records.key), carried(records.value)
    made: list[dict[str, Any]] = []
    for row in range(len(records)):
        headers: list[Any] = []
        for header in records.headers:
            if header.present is None or header.present[row].as_py():
                (value,) = carried(header.column.take(pa.array([row])))
                headers.append([header.key, value])
        made.append(
            {
                "topic": records.topic,
                "partition": records.partition[row].as_py(),
                "timestamp": records.timestamp[row].as_py(),
                "offset": records.offset[row].as_py(),
                "key": keys[row],
                "value": values[row],
                "headers": headers,
            }
        )
    return made


def plain(record: dict[str, Any] | None, transform: str = "") -> Any:
    """A record that travelled, so that it can be compared: what has no schema has no order. What Cast makes of numbers
    with 32 bits has more digits in Java than it needs."""
    if record is None:
        return None

    def read(text: str | None) -> Any:
        content = unpacked(text)
        if content is not None and transform == "Cast":
            content = FRACTION.sub(lambda found: f"{float(found[0]):.6g}".encode(), content)
        parsed = None if content is None else json.loads(content)
        return parsed if parsed is None or parsed["schema"] is None else content

    made = {name: record[name] for name in ("topic", "partition", "timestamp")}
    made |= {name: read(record[name]) for name in ("key", "value")}
    return made | {"headers": [[key, read(value)] for key, value in record["headers"]]}


def row_by_row(transform: Any, records: Records) -> list[tuple[Any, str | None]]:
    made: list[tuple[Any, str | None]] = []
    for row in range(len(records)):
        try:
            out = transform.apply(records.take(pa.array([row], pa.int64())))
            found = [one for batch in out for one in said(batch)]
            made.append((found[0] if found else None, None))
        except DataError as error:
            made.append((None, str(error)))
    return made


def has_lost_its_type(name: str, options: dict[str, str], records: Records, place: str) -> bool:
    """A whole Date or Decimal that is cast keeps its name, and Kafka's converters then refuse it."""
    column = records.key if place == "Key" else records.value
    is_whole = name == "Cast" and ":" not in options["spec"]
    return is_whole and isinstance(column, Column) and column.schema.logical is not None


def is_ours_to_differ(name: str, records: Records, row: int, place: str) -> bool:
    """Where Kafka's fail: MaskField on tombstones and decimals, SetSchemaMetadata on anything but structs."""
    if name not in ("MaskField", "SetSchemaMetadata"):
        return False
    column = records.key if place == "Key" else records.value
    if name == "SetSchemaMetadata":
        return isinstance(column, Column) and column.schema.type is not Type.STRUCT
    if column.is_null()[row].as_py():
        return True
    return (
        isinstance(column, Column)
        and column.schema.type is Type.STRUCT
        and any(field.schema.logical is not None for field in column.schema.fields)
    )


@pytest.mark.parametrize("kind", KAFKAS, ids=lambda kind: kind.class_name.removeprefix(PACKAGE))
def test_records_become_what_kafka_makes_of_them(kind: Any) -> None:
    name, _, place = kind.class_name.removeprefix(PACKAGE).partition("$")
    data = TellingData(SEED) if name in ("Cast", "TimestampConverter") else RandomData(SEED)
    batches = BATCHES if len(OPTIONS[name]) < 20 else BATCHES // 4
    cases = [(options, random_records(data)) for options in OPTIONS[name] for _ in range(batches)]
    questions = [
        {"do": "transform", "class": kind.class_name, "options": options, "records": said(records)}
        for options, records in cases
    ]
    transformed = 0
    for number, ((options, records), answer) in enumerate(zip(cases, asked(questions), strict=True)):
        transform = make_transform(kind.class_name, options)
        ours = row_by_row(transform, records)
        for row, (javas, (made, refusal)) in enumerate(zip(answer["out"], ours, strict=True)):
            if is_ours_to_differ(name, records, row, place):
                continue
            if name == "ReplaceField" and "is not a valid field name" in javas.get("message", ""):
                continue  # a new name that another field has, and no field of the old name
            if name == "ReplaceField" and refusal is not None and "duplication" in refusal and "error" not in javas:
                continue  # two members of one name, of which Kafka keeps the later one in its hash table
            if "are too many for a Date" in (refusal or "") or has_lost_its_type(name, options, records, place):
                continue
            where = f"batch {number} row {row} {options}: {refusal}, Kafka: {javas}"
            assert (refusal is None) == ("error" not in javas), where
            if refusal is None:
                if name != "Cast" or plain(made) != plain(javas["out"]):
                    assert plain(made, name) == plain(javas["out"], name), where
                transformed += 1
            elif name == "MaskField":  # which field is refused first hangs on a hash table
                assert refusal[:26] == javas["message"][:26], where
            elif javas["error"] == "DataException":
                assert refusal == javas["message"], where
        # All at once: the same, in whatever batches.
        if all(refusal is None for _, refusal in ours):
            together = [one for batch in transform.apply(records) for one in said(batch)]
            expected = [made for made, _ in ours if made is not None]
            assert sorted(map(repr, together)) == sorted(map(repr, expected)), f"batch {number} {options}"
    assert transformed > BATCHES / 4


@pytest.mark.parametrize("kind", PREDICATES, ids=lambda kind: kind.class_name.removeprefix(PACKAGE))
def test_predicates_hold_where_kafkas_hold(kind: Any) -> None:
    data = RandomData(SEED + 1)
    options = {
        "HasHeaderKey": {"name": "one"},
        "RecordIsTombstone": {},
        "TopicNameMatches": {"pattern": "shop(?!-).*"},
    }[kind.class_name.rpartition(".")[2]]
    batches = [random_records(data) for _ in range(BATCHES)]
    questions = [
        {"do": "predicate", "class": kind.class_name, "options": options, "records": said(records)}
        for records in batches
    ]
    predicate = make_predicate(kind.class_name, options)
    for records, answer in zip(batches, asked(questions), strict=True):
        assert predicate.holds(records).to_pylist() == answer["out"]


WRONG: list[tuple[str, dict[str, str]]] = [
    ("Cast$Value", {}),
    ("Cast$Value", {"spec": ""}),
    ("Cast$Value", {"spec": "int8,a:int8"}),
    ("Cast$Value", {"spec": "a:bytes"}),
    ("DropHeaders", {}),
    ("DropHeaders", {"headers": ""}),
    ("DropHeaders", {"headers": "a,,b"}),
    ("ExtractField$Key", {}),
    ("ExtractField$Key", {"field": "a", "field.syntax.version": "V3"}),
    ("ExtractField$Key", {"field": "`a", "field.syntax.version": "v2"}),
    ("HeaderFrom$Value", {"fields": "a", "headers": "", "operation": "copy"}),
    ("HeaderFrom$Value", {"fields": "a", "headers": "b,c", "operation": "copy"}),
    ("HeaderFrom$Value", {"fields": "a", "headers": "b", "operation": "steal"}),
    ("InsertField$Value", {}),
    ("InsertHeader", {"header": "a"}),
    ("InsertHeader", {"value.literal": "a"}),
    ("MaskField$Value", {"fields": "a", "replacement": ""}),
    ("ReplaceField$Value", {"renames": "a"}),
    ("ReplaceField$Value", {"renames": "a:b,c:d:e"}),
    ("SetSchemaMetadata$Value", {}),
    ("SetSchemaMetadata$Value", {"schema.version": "x"}),
    ("TimestampConverter$Value", {}),
    ("TimestampConverter$Value", {"target.type": "date"}),
    ("TimestampConverter$Value", {"target.type": "string"}),
    ("TimestampConverter$Value", {"target.type": "unix", "unix.precision": "days"}),
    ("ValueToKey", {"fields": ""}),
    ("predicates.HasHeaderKey", {"name": ""}),
]


def test_wrong_options_are_refused_in_kafkas_words() -> None:
    questions = [
        {"do": "predicate" if "predicates" in name else "transform", "class": PACKAGE + name, "options": options}
        for name, options in WRONG
    ]
    answers = asked({**question, "records": []} for question in questions)
    for (name, options), answer in zip(WRONG, answers, strict=True):
        make = make_predicate if "predicates" in name else make_transform
        with pytest.raises(ConnectError) as refused:
            make(PACKAGE + name, options)
        assert (answer.get("error"), str(refused.value)) == (
            "ConfigException",
            answer.get("message"),
        ), f"{name} {options}"
