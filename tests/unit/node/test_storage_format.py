"""Formatting: the same bytes as Apache Kafka's tool writes, and nothing where something stands in the way."""

import errno
from base64 import b64decode, b64encode
from hashlib import sha256
from hmac import digest
from pathlib import Path

import pytest

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid, parse_uuid
from ottla.base.ports import Disk
from ottla.log.disk import OsDisk
from ottla.log.files import read_file
from ottla.machines.metadata.image.features import FEATURES, SERVED
from ottla.machines.raft.voters import DYNAMIC_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet
from ottla.node.storage.bootstrap import read_bootstrap
from ottla.node.storage.format_scram import WrongScram, parse_scram
from ottla.node.storage.format_voters import WrongVoters, parse_initial_controllers
from ottla.node.storage.formatting import FormatPlan, Surroundings, format_storage
from ottla.node.storage.meta_properties import MetaProperties, format_meta_properties
from ottla.records.batch import TimestampType, batches, set_max_timestamp
from ottla.runtime.metadata.storage.snapshots import read_snapshot
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import Crashed, MemoryDisk

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1" / "standalone"
CLUSTER_ID = "b3R0bGEtaW50ZXJvcC0wMQ"
DATE = "Sun Nov 15 10:37:53 UTC 2026"
FIRST_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def plan(*directories: str, **fields: object) -> FormatPlan:
    paths = directories or ("/data",)
    return FormatPlan(CLUSTER_ID, 1, paths, paths[0], **fields)  # type: ignore[arg-type]


def world(disk: Disk, now_ms: int = 1_700_000_000_000) -> Surroundings:
    numbers = iter(range(1, 1000))

    def new_id() -> Uuid:
        return Uuid(b"directory%07d" % next(numbers))

    return Surroundings(disk, FixedClock(now_ms), DATE, new_id, lambda: bytes(20))


def run(disk: Disk, a_plan: FormatPlan) -> list[str]:
    said: list[str] = []
    format_storage(a_plan, world(disk), said.append)
    return said


def with_timestamps_of(theirs: bytes, ours: bytes) -> bytes:
    """Our batches with the times of theirs: when a batch was written is all that may differ."""
    data = bytearray(ours)
    for (position, header), (_, original) in zip(batches(ours), batches(theirs), strict=True):
        data[position + 27 : position + 35] = original.base_timestamp.to_bytes(8, "big")
        header = header._replace(base_timestamp=original.base_timestamp)
        set_max_timestamp(data, position, header, TimestampType.CREATE_TIME, original.max_timestamp)
    return bytes(data)


def test_the_files_are_those_of_kafka_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FEATURES.keys() - SERVED.keys():  # Which Kafka's were formatted with.
        monkeypatch.setitem(SERVED, name, FEATURES[name].supported)
    voters = read_snapshot(OsDisk(), str(GOLDEN / FIRST_SNAPSHOT)).voters
    assert voters is not None
    disk = MemoryDisk()
    written_ms = read_snapshot(OsDisk(), str(GOLDEN / FIRST_SNAPSHOT)).last_contained_log_timestamp
    format_storage(plan(initial_voters=voters, has_dynamic_voters=True), world(disk, written_ms), lambda _line: None)
    for name in ("bootstrap.checkpoint", FIRST_SNAPSHOT):
        theirs = (GOLDEN / name).read_bytes()
        assert with_timestamps_of(theirs, read_file(disk, f"/data/{name}")) == theirs, name
    assert read_file(disk, "/data/meta.properties") == (GOLDEN / "meta.properties").read_bytes()


def test_every_directory_gets_an_id_of_its_own_and_says_what_it_is() -> None:
    disk = MemoryDisk()
    said = run(disk, plan("/a", "/b"))
    assert said[1:] == [
        "Formatting metadata directory /a with metadata.version 4.3-IV0.",
        "Formatting data directory /b with metadata.version 4.3-IV0.",
    ]
    assert disk.list_dir("/a") == ["bootstrap.checkpoint", "meta.properties"]
    assert disk.list_dir("/b") == ["bootstrap.checkpoint", "meta.properties"]
    ids = [b"directory0000001", b"directory0000002"]
    for path, directory_id in zip(("/a", "/b"), ids, strict=True):
        meta = MetaProperties(CLUSTER_ID, 1, Uuid(directory_id))
        assert read_file(disk, f"{path}/meta.properties") == format_meta_properties(meta, DATE)


def test_a_voters_directory_has_the_id_that_the_quorum_knows_it_by() -> None:
    disk = MemoryDisk()
    voters = parse_initial_controllers("1@localhost:9093:JEXY6aqzQY-32P5TStzaFg", "CONTROLLER")
    said = run(disk, plan(initial_voters=voters, has_dynamic_voters=True))
    assert "Formatting dynamic metadata voter directory /data with" in said[1]
    assert b"directory.id=JEXY6aqzQY-32P5TStzaFg\n" in read_file(disk, "/data/meta.properties")
    snapshot = read_snapshot(disk, f"/data/{FIRST_SNAPSHOT}")
    assert (snapshot.kraft_version, snapshot.voters) == (DYNAMIC_VOTERS, voters)


def test_a_node_that_is_not_a_voter_gets_the_voters_all_the_same() -> None:
    disk = MemoryDisk()
    voters = parse_initial_controllers("2@localhost:9093:JEXY6aqzQY-32P5TStzaFg", "CONTROLLER")
    said = run(disk, plan(initial_voters=voters, has_dynamic_voters=True))
    assert "Formatting dynamic metadata directory /data with" in said[1]
    assert disk.exists(f"/data/{FIRST_SNAPSHOT}")


def test_formatted_directories_are_left_alone_only_when_asked() -> None:
    disk = MemoryDisk()
    run(disk, plan("/a"))
    before = read_file(disk, "/a/meta.properties")
    with pytest.raises(StorageError, match=r"Log directory /a is already formatted\. Use --ignore-formatted"):
        run(disk, plan("/a", "/b"))
    assert not disk.exists("/b")
    assert len(run(disk, plan("/a", "/b", ignore_formatted=True))) == 2
    assert run(disk, plan("/a", "/b", ignore_formatted=True)) == ["All of the log directories are already formatted."]
    assert read_file(disk, "/a/meta.properties") == before


def test_a_directory_of_another_cluster_is_refused() -> None:
    disk = MemoryDisk()
    run(disk, plan("/a"))
    other = FormatPlan("AAAAAAAAAAAAAAAAAAAAAQ", 1, ["/a", "/b"], "/a", ignore_formatted=True)
    with pytest.raises(StorageError, match=f"Expected AAAAAAAAAAAAAAAAAAAAAQ, but read {CLUSTER_ID}"):
        run(disk, other)


def levels(disk: Disk) -> dict[str, int]:
    return {record.name: record.feature_level for record in read_bootstrap(disk, "/data")}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"release": 8}, {"metadata.version": 8}),
        ({"features": {"metadata.version": 20}}, {"metadata.version": 20}),
        ({"release": 24}, {"metadata.version": 24, "group.version": 1, "transaction.version": 2}),
        (
            {"features": {"group.version": 0, "transaction.version": 0, "streams.version": 0}},
            {"metadata.version": 30, "eligible.leader.replicas.version": 1},
        ),
    ],
)
def test_levels_come_from_the_release_and_from_what_is_asked_for(
    fields: dict[str, object], expected: dict[str, int]
) -> None:
    disk = MemoryDisk()
    run(disk, plan(**fields))
    assert levels(disk) == expected


@pytest.mark.parametrize("feature", ["share.version", "streams.version"])
def test_a_feature_that_is_not_served_cannot_be_switched_on(feature: str) -> None:
    with pytest.raises(StorageError, match=f"{feature} is not served by this version"):
        run(MemoryDisk(), plan(features={feature: 1}))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"release": 25, "features": {"metadata.version": 20}}, "Use --release-version instead of"),
        ({"features": {"metadata.version": 99}}, "Unknown metadata.version 99"),
        ({"features": {"nope": 1}}, "Unsupported feature: nope. Supported features are: eligible.leader.replicas"),
        ({"features": {"group.version": 9}}, "No feature:group.version with feature level 9"),
        (
            {"release": 21, "features": {"eligible.leader.replicas.version": 1}},
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
        ),
        ({"features": {"kraft.version": 1}}, "Cannot set kraft.version to 1 unless controller.quorum.voters is empty"),
        (
            {"features": {"kraft.version": 0}, "has_dynamic_voters": True},
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty",
        ),
        ({"release": 10, "scram": ["SCRAM-SHA-256=[name=a,password=b]"]}, "SCRAM is only supported in .* 3.5-IV2 or"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(fields: dict[str, object], complaint: str) -> None:
    disk = MemoryDisk()
    with pytest.raises(StorageError, match=complaint):
        run(disk, plan(**fields))
    assert not disk.exists("/data")


@pytest.mark.parametrize("call", range(1, 20))
def test_a_crash_half_way_leaves_a_directory_that_can_be_formatted(call: int) -> None:
    disk = MemoryDisk()
    disk.crash_at(call)
    voters = VoterSet([Voter(ReplicaKey(1, Uuid(b"directory-of-one")), (Endpoint("C", "h", 1),))])
    wanted = plan(initial_voters=voters, has_dynamic_voters=True)
    with pytest.raises(Crashed):
        run(disk, wanted)
    survivor = disk.survivor_of_kill()
    if not survivor.exists("/data/meta.properties"):
        run(survivor, wanted)
    assert read_snapshot(survivor, f"/data/{FIRST_SNAPSHOT}").voters == voters
    assert len(read_bootstrap(survivor, "/data")) == 4


def test_a_full_disk_is_one_line() -> None:
    disk = MemoryDisk()
    disk.fail_from(3, errno.ENOSPC)
    with pytest.raises(StorageError, match=r"Error while writing meta\.properties file /data: "):
        run(disk, plan())


def test_scram_keys_are_those_that_kafka_derives() -> None:
    """From a run of Kafka's tool with the same salt and salted password."""
    record = parse_scram(
        'SCRAM-SHA-256=[name=alice,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E=",'
        'saltedpassword="mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE="]',
        lambda: b"",
    )
    assert (record.name, record.mechanism, record.iterations) == ("alice", 1, 8192)
    assert list(record.stored_key)[:6] == [93, 50, 42, 160, 113, 232]
    assert list(record.server_key)[:6] == [101, 174, 119, 71, 108, 132]


def test_a_password_gives_the_keys_that_check_the_exchange_of_rfc_7677() -> None:
    record = parse_scram(
        "SCRAM-SHA-256=[name=user,password=pencil,iterations=4096,salt=W22ZaJ0SNY7soEsUEjb6gQ==]", lambda: b""
    )
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    assert b64encode(digest(record.server_key, exchange, "sha256")) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = digest(record.stored_key, exchange, "sha256")
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    assert sha256(client_key).digest() == record.stored_key


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign"),
        ("SCRAM-SHA-1=[name=a,password=b]", "mechanism SCRAM-SHA-1 is not supported"),
        ("SCRAM-SHA-256=name=a", "start with"),
        ("SCRAM-SHA-256=[name=a", "end with"),
        ("SCRAM-SHA-256=[name]", "No equals sign found in SCRAM component"),
        ("SCRAM-SHA-256=[password=b]", "You must supply 'name'"),
        ("SCRAM-SHA-256=[name=a]", "one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "You must supply 'salt'"),
        ("SCRAM-SHA-256=[name=a,password=b,salt=!]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=x]", "Failed to parse iterations count: x"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=4095]", ">= 4096 for add-scram using SCRAM_SHA_256"),
        ("SCRAM-SHA-512=[name=a,password=b,iterations=16385]", "<= 16384 for add-scram using SCRAM_SHA_512"),
        ("SCRAM-SHA-256=[name=a,password=b,realm=c]", "Unknown SCRAM configurations: realm"),
    ],
)
def test_a_credential_that_is_not_one_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(WrongScram, match=complaint):
        parse_scram(text, lambda: b"salt")


def test_keys_are_kept_out_of_what_is_printed() -> None:
    disk = MemoryDisk()
    said = run(disk, plan(scram=["SCRAM-SHA-256=[name=alice,password=secret]"]))
    assert "UserScramCredentialRecord(name='alice', [hidden])" in said[0]
    assert read_bootstrap(disk, "/data")[-1].name == "alice"  # type: ignore[attr-defined]


def test_voters_are_read_from_the_command_line() -> None:
    voters = parse_initial_controllers("2@[::1]:8084:MvDxzVmcRsaTz33bUuRU6A, 1@h:8083:JEXY6aqzQY-32P5TStzaFg", "ctl")
    assert list(voters) == [
        Voter(ReplicaKey(1, parse_uuid("JEXY6aqzQY-32P5TStzaFg")), (Endpoint("CTL", "h", 8083),)),
        Voter(ReplicaKey(2, parse_uuid("MvDxzVmcRsaTz33bUuRU6A")), (Endpoint("CTL", "::1", 8084),)),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "No voters given"),
        ("1@localhost", "id@hostname:port:directory"),
        ("x@localhost:1:JEXY6aqzQY-32P5TStzaFg", "id@hostname:port:directory"),
        ("1@localhost:99999:JEXY6aqzQY-32P5TStzaFg", "Invalid port 99999"),
        ("1@localhost:1:short", "Failed to parse directory ID"),
        ("1@h:1:JEXY6aqzQY-32P5TStzaFg,1@i:1:MvDxzVmcRsaTz33bUuRU6A", "Node id 1 was specified more than once"),
    ],
)
def test_voters_that_are_none_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(WrongVoters, match=complaint):
        parse_initial_controllers(text, "CONTROLLER")
