"""Valid messages with extreme values: each is made to make sense to the node, then a few of its fields go to extremes.

Theory of operation: everything comes from one `Random`. A message is filled from a scene (`fuzz_known`). Then none, one
or a few of its fields, at any depth, are set to an extreme of their type: the lowest, the highest, empty, as long as it
can be, null, an entry twice, a thousand or a hundred thousand entries. What the protocol cannot carry is made anew.

`keep_from_harm` leaves out what a node must do when it is asked, and then serves others no longer: going back to an
older version of its metadata, leaving the cluster, a setting of the broker itself, topics without number. What is not
served is not sent: ControlledShutdown went with ZooKeeper.
"""

from random import Random
from typing import Any

from ottla.wire import encode, schema
from ottla.wire.faults import EncodeError
from ottla.wire.frame import encode_request, request_type
from ottla.wire.message import Message
from tests.property.node.fuzz_known import EXPRESSIONS, FEATURES, NODE_ID, TOPICS, Known, Scene
from tests.property.wire.wire_values import EDGES, RandomMessages

STRINGS = (
    "", "x" * 32767, "🐎" * 8191, "é" * 249, "9" * 5000, "-1", "a\0b", ".", "..", "../../up", " ", "null", "%s{}", "²",
    "a" * 250, *EXPRESSIONS,
)  # fmt: skip
BYTES = (b"", b"\xff" * 20, bytes(100_000), b"\0\0\0\0\0\1\x7f\xff\xff\xff")
FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324)
MANY, HUGE = 1000, 100_000
LARGEST_BYTES, LARGEST_HUGE_BYTES = 256 << 10, 8 << 20
"""Of a request: so many entries, and not as many of as many."""
MOST_BYTES_OF_ONE = 1 << 10
"""Of a message that is made huge."""


class FuzzMessages:
    """`apis` are pairs of key and version."""

    def __init__(self, random: Random, known: Known, apis: list[tuple[int, int]]) -> None:
        self._random = random
        self._known = known
        self._apis = apis
        self._anything = RandomMessages(random)
        self._may_be_many = True

    def request(self, number: int, *, huge: bool = False) -> tuple[Message, int, bytes]:
        """A message, its version and its frame; `number` is its correlation id, and in the name of its client."""
        random = self._random
        while True:
            key, version = random.choice(self._apis)
            client = f"fuzz-{number}-" + "c" * random.choices((0, 32_700, 32_750), (200, 1, 1))[0]
            try:
                message = self._message(key, version, huge=huge)
                keep_from_harm(message, version)
                frame = encode_request(message, version, number & 0x7FFFFFFF, client)
            except EncodeError:
                continue
            if len(frame) <= (LARGEST_HUGE_BYTES if huge else LARGEST_BYTES):
                return message, version, frame

    def _message(self, key: int, version: int, *, huge: bool) -> Message:
        message_type = request_type(key)
        if not huge and self._random.random() < 0.05:
            return self._anything.message(message_type, version)
        message = self.sensible(message_type, version)
        if isinstance(getattr(message, "request_data", None), bytes):
            message.request_data = self._embedded()  # type: ignore[attr-defined]
        fields = fields_of(message, message._schema.root, version)
        if huge:
            if len(encode(message, version)) > MOST_BYTES_OF_ONE:
                return message  # A hundred thousand of its long names would be gigabytes.
            arrays = [place for place in fields if place[1].is_array and getattr(place[0], place[1].attribute)]
            for owner, field in self._random.sample(arrays, 1) if arrays else ():
                setattr(owner, field.attribute, self._repeated(getattr(owner, field.attribute), HUGE))
        else:
            count = self._random.choices((0, 1, 2, 4), (3, 5, 2, 1))[0]
            self._may_be_many = True
            for owner, field in self._random.sample(fields, min(count, len(fields))):
                setattr(owner, field.attribute, self._extreme(getattr(owner, field.attribute), field, version))
        return message

    def _embedded(self) -> bytes:
        """A request in an envelope; sometimes another envelope."""
        key, version = self._random.choice(self._apis)
        try:
            return encode_request(self._message(key, version, huge=False), version, 1, "enveloped")[4:]
        except (EncodeError, RecursionError):
            return b""

    # Sense

    def sensible(self, message: type[Message], version: int) -> Any:
        """A message that makes sense to the node."""
        return self._struct(message, message._schema.root, version, message, self._known.scene())

    def _struct(self, message: type[Message], struct: schema.Struct, version: int, made_as: Any, scene: Scene) -> Any:
        return made_as(
            **{
                field.attribute: self._field(message, struct, field, version, scene)
                for field in struct.fields
                if version in field.versions
            }
        )

    def _field(
        self, message: type[Message], struct: schema.Struct, field: schema.Field, version: int, scene: Scene
    ) -> Any:
        if field.is_array:
            if version in field.nullable and self._random.random() < 0.2:
                return None
            count = self._random.choices((0, 1, 2, 3), (1, 8, 3, 1))[0]
            return [self._value(message, struct, field, version, scene) for _ in range(count)]
        value = self._value(message, struct, field, version, scene)
        return value if value is not None or version in field.nullable else _zero(field.type)

    def _value(
        self, message: type[Message], struct: schema.Struct, field: schema.Field, version: int, scene: Scene
    ) -> Any:
        if field.struct is not None:
            return self._struct(message, field.struct, version, getattr(message, field.type), scene)
        try:
            return scene.fill(struct.name, field.attribute)
        except KeyError:
            return self._random.random() < 0.3 if field.type == "bool" else _zero(field.type)

    # Extremes

    def _extreme(self, value: Any, field: schema.Field, version: int) -> Any:
        random = self._random
        if version in field.nullable and random.random() < 0.2:
            return None
        if field.is_array:
            match random.choices(("none", "twice", "many", "strange"), (3, 5, 1, 3))[0]:
                case "none":
                    return []
                case "twice":
                    return [*value, *value] if value else value
                case "many" if self._may_be_many:
                    self._may_be_many = False  # A thousand of a thousand long names would be gigabytes.
                    return self._repeated(value, MANY)
            return value if field.struct or value is None else [*value, self._scalar(field.type)]
        return value if field.struct else self._scalar(field.type)

    def _scalar(self, type_name: str) -> Any:
        random = self._random
        if type_name in EDGES:
            low, high = EDGES[type_name]
            return random.choice((low, high, 0, 1, -1 if low else 1, high - 1, low + 1))
        match type_name:
            case "bool":
                return random.random() < 0.5
            case "string":
                return random.choice(STRINGS)
            case "uuid":
                return random.choice((bytes(16), b"\xff" * 16, random.randbytes(16), bytes(15) + b"\1"))
            case "float64":
                return random.choice(FLOATS)
        return random.choice(BYTES)

    def _repeated(self, value: Any, count: int) -> Any:
        """The same entries again and again; of names, different ones, so that nothing is saved by what they share."""
        if not value:
            return value
        if isinstance(value[0], str) and self._random.random() < 0.5:
            return [f"{value[0][:20]}-{number}" for number in range(count)]
        if isinstance(value[0], int) and self._random.random() < 0.5:
            return list(range(count))
        return (list(value) * (count // len(value) + 1))[:count]


def _zero(type_name: str) -> Any:
    return schema._ZEROS[type_name] if type_name != "records" else b""


def fields_of(made: Any, struct: schema.Struct, version: int) -> list[tuple[Any, schema.Field]]:
    """Every field of the message, at every depth, with the object that has it."""
    found: list[tuple[Any, schema.Field]] = []
    for field in struct.fields:
        if version in field.versions:
            found.append((made, field))
            value = getattr(made, field.attribute)
            if field.struct is not None and value is not None:
                for inner in value if field.is_array else [value]:
                    found += fields_of(inner, field.struct, version)
    return found


def keep_from_harm(message: Any, version: int) -> None:
    """What would be done rightly and ends the experiment is only tried, where the API has a way to try it."""
    match type(message).__name__:
        case "CreateTopicsRequest":
            small = all(
                topic.name in TOPICS and topic.num_partitions <= 4 and len(topic.assignments) <= 4
                for topic in message.topics
            )
            message.validate_only = message.validate_only or not small
            if not small:
                message.topics = message.topics[:MANY]
        case "CreatePartitionsRequest":
            message.validate_only = message.validate_only or any(topic.count > 6 for topic in message.topics)
        case "AlterConfigsRequest" | "IncrementalAlterConfigsRequest":
            of_nodes = any(resource.resource_type in (4, 8) for resource in message.resources)
            message.validate_only = message.validate_only or of_nodes
        case "UpdateFeaturesRequest":
            is_harmless = all(update.feature in FEATURES for update in message.feature_updates)
            if version == 0:  # which cannot only try
                message.feature_updates = [one for one in message.feature_updates if one.feature in FEATURES]
            else:
                message.validate_only = message.validate_only or not is_harmless
        case "AlterClientQuotasRequest":
            named = (one for entry in message.entries for one in entry.entity)
            of_others = any(one.entity_name is None or one.entity_type == "ip" for one in named)
            message.validate_only = message.validate_only or of_others  # the innocent client's, too
        case "UnregisterBrokerRequest":
            message.broker_id = 7 if message.broker_id == NODE_ID else message.broker_id
