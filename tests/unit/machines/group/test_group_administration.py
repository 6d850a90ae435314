"""Listing, describing and deleting groups."""

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeGroupsResponse, GroupMetadataKey, ListGroupsResponse, OffsetCommitKey
from tests.unit.machines.group.group_bench import Groups, subscription


def listed(groups: Groups, states: set[str] = frozenset(), types: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    return [group.group_id for group in groups.machine.list_groups(frozenset(states), frozenset(types))]


def test_groups_are_listed_by_state_and_type() -> None:
    groups = Groups()
    groups.settled("ann")
    groups.commit({("orders", 0): 1}, group_id="simple")
    assert groups.machine.list_groups(frozenset(), frozenset()) == [
        ListGroupsResponse.ListedGroup(
            group_id="readers", protocol_type="consumer", group_state="Stable", group_type="classic"
        ),
        ListGroupsResponse.ListedGroup(group_id="simple", group_state="Empty", group_type="classic"),
    ]
    assert listed(groups, {"empty", "dead"}) == ["simple"]
    assert listed(groups, {"stable"}, {"classic"}) == ["readers"]
    assert listed(groups, types={"consumer"}) == []


def test_a_stable_group_is_described_with_what_its_members_want_and_have() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    described = groups.machine.describe_group("readers")
    assert described == DescribeGroupsResponse.DescribedGroup(
        group_id="readers",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=ann.member_id,
                group_instance_id=None,
                client_id="ann",
                client_host="/127.0.0.1",
                member_metadata=subscription("orders"),
                member_assignment=b"ann",
            )
        ],
    )


def test_while_it_gathers_a_group_is_described_without_what_may_change() -> None:
    groups = Groups()
    groups.settled("ann")
    groups.join("bob")
    described = groups.machine.describe_group("readers")
    assert described is not None
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in described.members] == [b"", b""]


def test_no_group_has_no_description() -> None:
    assert Groups().machine.describe_group("readers") is None


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    groups.commit({("orders", 0): 1, ("orders", 1): 2}, member_id=ann.member_id, generation=1)
    groups.leave(ann)
    before = len(groups.log)
    result = groups.carry_out(groups.machine.delete_group("readers", groups.now_ms))
    assert (result.group_id, result.error_code) == ("readers", ErrorCode.NONE)
    assert groups.records(before) == [
        (OffsetCommitKey(group="readers", topic="orders", partition=0), None),
        (OffsetCommitKey(group="readers", topic="orders", partition=1), None),
        (GroupMetadataKey(group="readers"), None),
    ]
    assert groups.machine.groups == {}


def test_groups_with_members_and_groups_that_do_not_exist_are_not_deleted() -> None:
    groups = Groups()
    groups.settled("ann")
    results = [groups.carry_out(groups.machine.delete_group(id, groups.now_ms)) for id in ("readers", "nobody")]
    assert [(result.group_id, ErrorCode(result.error_code)) for result in results] == [
        ("readers", ErrorCode.NON_EMPTY_GROUP),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
