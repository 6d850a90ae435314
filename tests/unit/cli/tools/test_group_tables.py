"""The tables of kafka-consumer-groups, as Apache Kafka's tool prints them."""

from ottla.cli.groups.group_tables import (
    ListRow,
    MemberRow,
    OffsetRow,
    ResetRow,
    StateRow,
    deleted_offset_lines,
    listing_lines,
    member_lines,
    offset_lines,
    reset_csv,
    reset_lines,
    state_lines,
)
from ottla.cli.groups.groups import group_lines
from ottla.client.admin.groups.listing import GroupListing, GroupState, GroupType


def test_groups_with_types_and_states() -> None:
    rows = [ListRow("newg", "Consumer", "Stable"), ListRow("live", "Classic", "Empty")]
    assert list(listing_lines(rows, with_type=True, with_state=True)) == [
        "GROUP                     TYPE                 STATE               ",
        "newg                      Consumer             Stable              ",
        "live                      Classic              Empty               ",
    ]
    assert list(listing_lines([], with_type=False, with_state=True)) == [
        "GROUP                     STATE               "
    ]


def test_offsets_and_lag() -> None:
    rows = [
        OffsetRow("live", "keyed", 0, 0, 8, 8, "cid-live-64ee241c-14b8", "/127.0.0.1", "cid-live"),
        OffsetRow("live", "orders", 0, None, None, 0, None, None, None),
    ]
    assert list(offset_lines(rows, verbose=False)) == [
        "",
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID            HOST            CLIENT-ID",
        "live            keyed           0          8               8               0               "
        "cid-live-64ee241c-14b8 /127.0.0.1      cid-live",
        "live            orders          0          -               0               -               "
        "-                      -               -",
    ]
    assert "PARTITION  LEADER-EPOCH    CURRENT-OFFSET" in list(offset_lines(rows, verbose=True))[1]


def test_members() -> None:
    row = MemberRow("newg", "zPcWm34JT1mDKB5lLr9rBg", "/127.0.0.1", "cid", "", 3, {"k": [0], "o": [1, 0]}, {}, 2, 2)
    assert list(member_lines([row], verbose=False)) == [
        "",
        "GROUP           CONSUMER-ID            HOST            CLIENT-ID       #PARTITIONS     ",
        "newg            zPcWm34JT1mDKB5lLr9rBg /127.0.0.1      cid             3               ",
    ]
    verbose = list(member_lines([row], verbose=True))
    assert verbose[1].endswith("CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   ")
    assert verbose[2].endswith("2               k:0;o:0,1            2               -                   ")


def test_instance_ids_have_a_column_if_there_are_any() -> None:
    rows = [MemberRow("g", "m", "h", "c", "static-1", 0, {}, None, None, None)]
    assert list(member_lines(rows, verbose=False))[1].split() == [
        "GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS",
    ]  # fmt: skip


def test_states() -> None:
    row = StateRow("live", "127.0.0.1:37515  (1)", "", "Empty", 0, 2, 3)
    assert list(state_lines(row, verbose=False)) == [
        "",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS",
        "live            127.0.0.1:37515  (1)      -                    Empty                0",
    ]
    assert list(state_lines(row, verbose=True))[2].endswith(
        "Empty                2               3                         0"
    )


def test_new_offsets_as_a_table_and_as_csv() -> None:
    rows = [ResetRow("done", "lines", 0, 3), ResetRow("a,b", "lines", 1, 0)]
    assert list(reset_lines(rows))[1:] == [
        "GROUP           TOPIC           PARTITION  NEW-OFFSET",
        "done            lines           0          3",
        "a,b             lines           1          0",
    ]
    assert reset_csv(rows, with_group=False) == "lines,0,3\nlines,1,0\n"
    assert reset_csv(rows, with_group=True) == 'done,lines,0,3\n"a,b",lines,1,0\n'


def test_deleted_offsets() -> None:
    statuses = {("lines", 0): "Successful", ("gone", -1): "Error: no"}
    assert list(deleted_offset_lines(statuses)) == [
        "",
        "TOPIC           PARTITION  STATUS         ",
        "gone            Not Provided Error: no      ",
        "lines           0          Successful     ",
    ]


def test_groups_of_all_types_have_columns_of_one_width() -> None:
    listed = [GroupListing("console-consumer-88916x", GroupType.CLASSIC, "consumer", GroupState.EMPTY)]
    assert list(group_lines(listed)) == [
        "GROUP                   TYPE                    PROTOCOL               ",
        "console-consumer-88916x Classic                 consumer                ",
    ]
