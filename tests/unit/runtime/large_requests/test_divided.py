"""A request of many entries is answered in parts as it would be as a whole."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.apis.description import Division
from ottla.apis.error_responses import error_response
from ottla.apis.table import APIS
from ottla.runtime.large_requests.divided import handle_in_parts
from ottla.runtime.large_requests.parts import ENTRIES_PER_PART, MOST_ENTRIES_AT_ONCE, divided, division_of
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import request_type, response_type
from ottla.wire.message import Message
from ottla.wire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListOffsetsRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    ProduceRequest,
    ProduceResponse,
)

MANY = 3 * MOST_ENTRIES_AT_ONCE + 7
ROWS = [(key, division) for key, row in APIS.items() for division in row.divisions]


def context(key: int, version: int) -> RequestContext:
    return RequestContext(key, version, 7, "client", ClientConnection(1, "PLAINTEXT", "127.0.0.1"), 0.0, 1 << 20)


def fields_of(message: Any, path: Iterator[str]) -> bool:
    struct = message._schema.root
    for name in path:
        found = [field for field in struct.fields if field.attribute == name]
        if not found or not found[0].is_array:
            return False
        struct = found[0].struct
    return True


@pytest.mark.parametrize(
    ("key", "division"), ROWS, ids=lambda value: ApiKey(value).name if isinstance(value, int) else ""
)
def test_a_division_names_lists_that_there_are(key: int, division: Division) -> None:
    assert fields_of(request_type(key), iter(division.asked))
    assert fields_of(response_type(key), iter([answers.list for answers in division.answered]))
    struct = response_type(key)._schema.root
    for answers in division.answered:
        struct = next(field.struct for field in struct.fields if field.attribute == answers.list)
        assert {field.attribute for field in struct.fields} >= set(answers.about)


def a_request(key: int, version: int, asked: tuple[str, ...], depth: int, count: int) -> Any:
    """A request with that many entries in the list at that depth, and one around them; all are different."""
    message, numbers = request_type(key), itertools.count()

    def structs(struct: Any, made_as: Any, at: int) -> Any:
        made, number = made_as(), next(numbers)
        for field in struct.fields:
            if version not in field.versions:
                continue
            if at < len(asked) and field.attribute == asked[at]:
                entries = count if at == depth else 1
                if field.struct is None:
                    make = str if field.type == "string" else int
                    setattr(made, field.attribute, [make(one) for one in range(entries)])
                else:
                    inner = getattr(message, field.type)
                    setattr(made, field.attribute, [structs(field.struct, inner, at + 1) for _ in range(entries)])
            elif not field.is_array and field.type == "string":
                setattr(made, field.attribute, f"{field.attribute}-{number}")
            elif not field.is_array and field.type in ("int32", "int64") and at:
                setattr(made, field.attribute, number)
            elif not field.is_array and field.type == "uuid":
                setattr(made, field.attribute, number.to_bytes(16))
        return made

    return structs(message._schema.root, message, 0)


def in_parts(division: Division, request: Any, version: int, handle: Any) -> Any:
    replies: list[Message | None] = []
    for _ in handle_in_parts(division, handle, context(request._schema.api_key, version), request, replies.append):
        assert not replies
    [reply] = replies
    return reply


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "division"), ROWS, ids=lambda value: ApiKey(value).name if isinstance(value, int) else ""
)
def test_parts_are_answered_as_the_whole_is(key: int, division: Division) -> None:
    for version in api(key).stable_versions:
        for depth, name in enumerate(division.asked):
            request = a_request(key, version, division.asked, depth, MANY)
            if not getattr(request, division.asked[0]):
                continue  # The version has no such list.
            assert division_of(key, request) is division, name
            sizes = []

            def handle(of: RequestContext, part: Any, respond: Any, sizes: list[int] = sizes) -> None:
                assert division_of(of.api_key, part) is None
                sizes.append(1)
                respond(error_response(part, of.api_version, ErrorCode.NONE))

            whole = error_response(request, version, ErrorCode.NONE)
            assert in_parts(division, request, version, handle) == whole
            assert len(sizes) == -(-MANY // ENTRIES_PER_PART)


def test_small_requests_are_not_divided() -> None:
    request = a_request(ApiKey.LIST_OFFSETS, 7, ("topics", "partitions"), 0, MOST_ENTRIES_AT_ONCE)
    assert division_of(ApiKey.LIST_OFFSETS, request) is None


def test_an_entry_without_inner_ones_is_an_entry() -> None:
    """A group that is asked for everything has no list of topics."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(groups=[group(group_id=str(number), topics=None) for number in range(250)])
    parts = list(divided(APIS[ApiKey.OFFSET_FETCH].divisions[0], request))
    assert [len(part.groups) for part in parts] == [100, 100, 50]
    assert [one.group_id for part in parts for one in part.groups] == [str(number) for number in range(250)]
    assert all(one.topics is None for part in parts for one in part.groups)


def list_offsets(*asked: tuple[str, int]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=name, partitions=[ListOffsetsRequest.ListOffsetsPartition(partition_index=index)]
            )
            for name, index in asked
        ]
    )


@pytest.mark.parametrize("times", [2, 3, 101, 350])
def test_what_is_named_twice_is_named_twice_in_its_part(times: int) -> None:
    division = APIS[ApiKey.LIST_OFFSETS].divisions[0]
    asked = [("t", number) for number in range(600)] + [("again", 0), ("again", 1)] * times
    parts = [part for part in divided(division, list_offsets(*asked)) if part is not None]
    entries = [[(topic.name, topic.partitions[0].partition_index) for topic in part.topics] for part in parts]
    assert sorted(one for part in entries for one in part) == sorted(asked)
    for part in entries:
        assert all(part.count(one) > 1 for one in part if one[0] == "again")
        assert len(part) <= 2 * ENTRIES_PER_PART + 1


def test_answers_about_the_same_are_joined() -> None:
    names = [f"g{number % 300}" for number in range(900)]

    def handle(_context: Any, part: Any, respond: Any) -> None:
        result = DeleteGroupsResponse.DeletableGroupResult
        respond(DeleteGroupsResponse(results=[result(group_id=name) for name in dict.fromkeys(part.groups_names)]))

    reply = in_parts(APIS[ApiKey.DELETE_GROUPS].divisions[0], DeleteGroupsRequest(groups_names=names), 2, handle)
    assert [result.group_id for result in reply.results] == names[:300]


def test_an_error_about_the_whole_request_is_its_answer_and_the_last_part() -> None:
    topics = [
        OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name=f"t{number}", partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition()]
        )
        for number in range(900)
    ]
    seen = []

    def handle(_context: Any, part: Any, respond: Any) -> None:
        seen.append(part)
        error = ErrorCode.GROUP_ID_NOT_FOUND if len(seen) == 2 else ErrorCode.NONE
        respond(OffsetDeleteResponse(error_code=error))

    division = APIS[ApiKey.OFFSET_DELETE].divisions[0]
    reply = in_parts(division, OffsetDeleteRequest(group_id="g", topics=topics), 0, handle)
    assert (reply.error_code, len(seen)) == (ErrorCode.GROUP_ID_NOT_FOUND, 2)


def produce(count: int) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData
    partitions = [partition(index=number, records=b"") for number in range(count)]
    return ProduceRequest(acks=-1, topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=partitions)])


def test_parts_may_be_answered_late_and_in_any_order_and_tell_of_a_node_once() -> None:
    division = APIS[ApiKey.PRODUCE].divisions[0]
    parked: list[Any] = []
    replies: list[Any] = []

    def handle(_context: Any, part: Any, respond: Any) -> None:
        response = error_response(part, 12, ErrorCode.NONE)
        response.node_endpoints = [ProduceResponse.NodeEndpoint(node_id=1), ProduceResponse.NodeEndpoint(node_id=2)]
        parked.append(lambda: respond(response))

    list(handle_in_parts(division, handle, context(0, 12), produce(350), replies.append))
    for one in reversed(parked):
        assert not replies
        one()
    [reply] = replies
    assert [answer.index for answer in reply.responses[0].partition_responses] == list(range(350))
    assert [node.node_id for node in reply.node_endpoints] == [1, 2]


def test_the_next_part_waits_while_the_connection_is_paused() -> None:
    clients: list[ClientConnection] = []

    def handle(of: RequestContext, _part: Any, respond: Any) -> None:
        clients.append(of.connection)
        of.connection.pause()
        respond(None)

    of_request = context(0, 12)
    replies: list[Any] = []
    steps = handle_in_parts(APIS[ApiKey.PRODUCE].divisions[0], handle, of_request, produce(250), replies.append)
    for number in range(3):
        [wait] = itertools.islice(steps, 1)
        assert wait is not None
        assert len(clients) == number + 1
        assert not of_request.connection.is_paused
        called: list[int] = []
        wait.when_over(lambda called=called: called.append(1))
        clients[-1].resume()
        assert called == [1]
    assert list(steps) == []
    assert replies == [None]
