"""A request of a hundred thousand entries, of every API that has a list: other clients are served all the while.

Each is sent in its newest version to a node whose coordinators are loaded. The innocent client writes and reads again
and again until the request is answered. In the short run the outermost list of some APIs is huge, of entries that are
all different; in the long run every list of every API, also of the oldest version, and of entries that are the same.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from ottla.apis.table import served_by_brokers, served_by_controllers
from ottla.testing.node import RunningNode
from ottla.wire.apis import ApiKey, all_apis
from ottla.wire.frame import encode_request, request_type
from ottla.wire.message import WireStruct, like
from tests.property.node.fuzz_known import Known
from tests.property.node.fuzz_load import Load
from tests.property.node.fuzz_messages import HUGE, FuzzMessages, fields_of, keep_from_harm
from tests.property.node.fuzz_run import MOST_STALL_S, SETTINGS, controllers_of
from tests.property.node.raw_connection import RawConnection
from tests.property.node.witness import Witness, slowest_while_waiting

_PATIENCE_S = 60.0
_TRIES = 40
_LARGEST_BEFORE = 1000  # of a request before it is made huge: some settings have values of 30 KB


class Loaded(NamedTuple):
    node: RunningNode
    known: Known
    witness: Witness
    address: dict[str, tuple[str, int]]


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    with RunningNode(config=SETTINGS) as node:
        known = Known(Random(1))
        known.directory = str(node.data)
        Load(lambda: RawConnection(node.bootstrap), known).put()
        witness = Witness(node.bootstrap, node.rss_bytes, _PATIENCE_S)
        yield Loaded(node, known, witness, {"broker": node.address, "controller": controllers_of(node.bootstrap)})
        witness.close()
        assert node.is_running, node.end_of_log()
        assert "Traceback" not in node.log.read_text(errors="replace"), node.end_of_log()


def _lists(key: int, version: int) -> list[str]:
    """Where a request of the API has lists: names of the structs and their fields, from the outermost."""
    found: list[str] = []

    def walk(struct: Any) -> None:
        fields = [field for field in struct.fields if version in field.versions]
        found.extend(f"{struct.name}.{field.attribute}" for field in fields if field.is_array)
        for field in fields:
            if field.struct is not None:
                walk(field.struct)

    walk(request_type(key)._schema.root)
    return found


_KEYS = {
    "broker": sorted(served_by_brokers()),
    "controller": sorted({*served_by_controllers()} - {*served_by_brokers()} - {ApiKey.ENVELOPE}),
}
_IN_EVERY_RUN = {
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_CONFIGS,
}
_CASES = [
    pytest.param(where, key, version, place, marks=marks, id=f"{ApiKey(key).name}-{version}-{place}")
    for where, keys in _KEYS.items()
    for key in keys
    for version, is_newest in ((all_apis()[key].stable_versions[-1], True), (all_apis()[key].stable_versions[0], False))
    for number, place in enumerate(_lists(key, version))
    for marks in ([] if key in _IN_EVERY_RUN and is_newest and not number else [pytest.mark.long],)
    if is_newest or len(all_apis()[key].stable_versions) > 1
]


def _huge(known: Known, key: int, version: int, place: str, *, is_distinct: bool) -> bytes:
    """A request that makes sense, with very many entries in that list, which are the same ones or all different."""
    messages = FuzzMessages(known.random, known, [(key, version)])
    message_type = request_type(key)
    for _ in range(_TRIES):
        message = messages.sensible(message_type, version)
        for owner, field in fields_of(message, message._schema.root, version):
            entries = getattr(owner, field.attribute)
            if f"{type(owner).__name__}.{field.attribute}" != place or not entries:
                continue
            if len(encode_request(message, version, 7, "huge")) > _LARGEST_BEFORE:
                continue
            entries = (list(entries) * (HUGE // len(entries) + 1))[:HUGE]
            if is_distinct:
                entries = [_made_distinct(entry, number, field.type) for number, entry in enumerate(entries)]
            setattr(owner, field.attribute, entries)
            keep_from_harm(message, version)
            return encode_request(message, version, 7, "huge")
    return pytest.skip(f"{place} stays empty")


def _made_distinct(entry: Any, number: int, type_name: str) -> Any:
    if isinstance(entry, str):
        return f"{entry[:20]}-{number}"
    if not isinstance(entry, WireStruct):
        return number if type_name in ("int32", "int64") else entry
    made = like(entry)
    for kinds in (("string",), ("uuid",), ("int32", "int64")):
        for field in entry._struct.fields:
            if field.type in kinds and not field.is_array and getattr(entry, field.attribute):
                old = getattr(entry, field.attribute)
                new = f"{old[:20]}-{number}" if isinstance(old, str) else number
                setattr(made, field.attribute, number.to_bytes(16) if isinstance(old, bytes) else new)
                return made
    return made


def _stall_s(loaded: Loaded, where: str, frame: bytes) -> float:
    with RawConnection(":".join(map(str, loaded.address[where])), _PATIENCE_S) as connection:
        connection.send(frame)
        return slowest_while_waiting(lambda: loaded.witness.stall_s(loaded.node.pid), connection, _PATIENCE_S)


@pytest.mark.parametrize("is_distinct", [True, pytest.param(False, marks=pytest.mark.long)], ids=["distinct", "same"])
@pytest.mark.parametrize(("where", "key", "version", "place"), _CASES)
def test_others_are_served_during_a_huge_request(
    loaded: Loaded, where: str, key: int, version: int, place: str, is_distinct: bool
) -> None:
    frame = _huge(loaded.known, key, version, place, is_distinct=is_distinct)
    stalls_s = [_stall_s(loaded, where, frame)]
    while stalls_s[-1] > MOST_STALL_S and len(stalls_s) < 3:  # One that is not slow again was the machine's.
        stalls_s.append(_stall_s(loaded, where, frame))
    assert min(stalls_s) <= MOST_STALL_S, stalls_s
    assert loaded.witness.growth_bytes() < 400 << 20
