"""`kafka-storage` from the command line: what it prints, and how it ends."""

import re
from pathlib import Path

import pytest

from ottla.base.ids import parse_uuid
from ottla.cli.storage import main
from ottla.log.disk import OsDisk
from ottla.runtime.metadata.storage.snapshots import read_snapshot

CLUSTER_ID = "b3R0bGEtaW50ZXJvcC0wMQ"
STATIC = "controller.quorum.voters=1@127.0.0.1:9093"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:9093"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def configure(config: Path, quorum: str, *more: str, roles: str = "broker,controller") -> list[str]:
    """Writes the settings; returns the options that name them."""
    data = config.parent / "data"
    lines = [
        f"process.roles={roles}",
        "node.id=1",
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={data}",
        quorum,
        *more,
    ]
    config.write_text("\n".join(lines))
    return ["-c", str(config)]


def test_formatting_and_then_asking(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = configure(config, STATIC)
    data = config.parent / "data"
    assert main(["info", *options]) == 1
    assert capsys.readouterr().out == f"Found problem:\n  {data} does not exist\n\n"
    assert main(["format", *options, "-t", CLUSTER_ID]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"Formatting metadata directory {data} with metadata.version 4.3-IV0.\n")
    assert main(["info", *options]) == 0
    found = capsys.readouterr().out
    assert found.startswith(f"Found log directory:\n  {data}\n\nFound metadata: {{cluster.id={CLUSTER_ID}, ")
    assert found.endswith(", node.id=1, version=1}\n\n")


def test_standalone_makes_this_controller_the_only_voter(config: Path) -> None:
    options = configure(config, DYNAMIC)
    assert main(["format", *options, "--cluster-id", CLUSTER_ID, "--standalone"]) == 0
    data = config.parent / "data"
    name = f"__cluster_metadata-0/{0:020}-{0:010}.checkpoint"
    (voter,) = read_snapshot(OsDisk(), str(data / name)).voters or ()
    assert (voter.key.id, voter.endpoints) == (1, (("CONTROLLER", "127.0.0.1", 9093),))
    directory = re.search(r"directory.id=(.*)", (data / "meta.properties").read_text())
    assert directory is not None
    assert parse_uuid(directory[1]) == voter.key.directory_id


def test_an_advertised_controller_is_the_voters_address(config: Path) -> None:
    advertised = "advertised.listeners=PLAINTEXT://b.example:9092,CONTROLLER://c.example:19093"
    options = configure(config, DYNAMIC, advertised)
    assert main(["format", *options, "-t", CLUSTER_ID, "-s"]) == 0
    name = f"data/__cluster_metadata-0/{0:020}-{0:010}.checkpoint"
    (voter,) = read_snapshot(OsDisk(), str(config.parent / name)).voters or ()
    assert voter.endpoints == (("CONTROLLER", "c.example", 19093),)


@pytest.mark.parametrize(
    ("quorum", "roles", "options", "complaint"),
    [
        (DYNAMIC, "controller", [], "you must specify one of the following: --standalone"),
        (STATIC, "controller", ["-s"], "You cannot specify controller.quorum.voters and format the node with"),
        (DYNAMIC, "broker", ["-s"], "You can only use --standalone on a controller."),
        (
            STATIC,
            "controller",
            ["-r", "9.4"],
            "Unknown metadata.version '9.4'. Supported metadata.version are: ",
        ),
        (STATIC, "controller", ["-f", "group.version"], "Can't parse feature=level string group.version: equals sign"),
        (STATIC, "controller", ["-f", "group.version=x"], "unable to parse x as a short."),
        (DYNAMIC, "controller", ["-I", "1@localhost"], "id@hostname:port:directory"),
    ],
)
def test_what_does_not_go_together_is_one_line_and_exit_code_1(
    config: Path,
    quorum: str,
    roles: str,
    options: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = configure(config, quorum, roles=roles)
    assert main(["format", *given, "-t", CLUSTER_ID, *options]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1
    assert not (config.parent / "data").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["format", "-c", "x"],
        ["format", "-c", "x", "-t", "y", "--standalone", "--no-initial-controllers"],
        ["feature-dependencies"],
        ["format", "-c", "x", "-t", "y", "--cluster"],
    ],
)
def test_bad_usage_is_exit_code_1(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("quorum", "more", "complaint"),
    [
        (STATIC, "process.roles=broker", "process.roles=broker: it must be with controller: node 1 is in"),
        (STATIC, "node.id=7", "node.id=7: it must be among controller.quorum.voters=1@127.0.0.1:9093"),
        (f"{STATIC},1@127.0.0.1:9094", "", "a list in which no id is twice"),
        (STATIC, "listeners=PLAINTEXT://127.0.0.1:9092", "a controller listens on CONTROLLER"),
        ("", "", "controller.quorum.voters=: it must be given, or controller.quorum.bootstrap.servers"),
        (STATIC, "broker.id=2", "broker.id=2: it must be the same as node.id (1)"),
    ],
    ids=["a broker that votes", "a controller that does not", "an id twice", "no listener", "no quorum", "two ids"],
)
def test_a_node_that_could_not_start_is_not_formatted(
    config: Path, capsys: pytest.CaptureFixture[str], quorum: str, more: str, complaint: str
) -> None:
    """Of two lines with the same key the later one counts. Apache Kafka takes an id twice, and refuses the others."""
    assert main(["format", *configure(config, quorum, more), "-t", CLUSTER_ID]) == 1
    assert complaint in capsys.readouterr().err
    assert not (config.parent / "data").exists()


def test_a_missing_settings_file_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "-c", "/nowhere/server.properties"]) == 1
    assert "/nowhere/server.properties" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ([], ("30 (4.3-IV0)", 1, 2, 1, 1, 1, 1)),
        (["-r", "4.3"], ("30 (4.3)", 1, 2, 1, 1, 1, 1)),
        (["-r", "3.5-IV2"], ("11 (3.5-IV2)", 0, 0, 0, 0, 0, 0)),
        (["--release-version", "4.0"], ("25 (4.0)", 1, 2, 1, 0, 0, 0)),
        (["-r", "3.9.1"], ("21 (3.9.1)", 1, 0, 0, 0, 0, 0)),
    ],
)
def test_version_mapping_prints_what_a_release_has(
    options: list[str], printed: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines, and their order, are those of Kafka's tool."""
    names = ["metadata", "kraft", "transaction", "group", "eligible.leader.replicas", "share", "streams"]
    assert main(["version-mapping", *options]) == 0
    expected = "".join(f"{name}.version={level}\n" for name, level in zip(names, printed, strict=True))
    assert capsys.readouterr().out == expected


def test_feature_dependencies(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["metadata.version=20", "group.version=1", "eligible.leader.replicas.version=1"]
    assert main(["feature-dependencies", *(word for name in wanted for word in ("-f", name))]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=20 (3.8-IV0) has no dependencies.",
        "group.version=1 has no dependencies.",
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
    ]


@pytest.mark.parametrize(
    ("feature", "complaint"),
    [
        ("group.version=9", "Feature level 9 is not supported for feature group.version"),
        ("nope=1", "Unknown feature: nope"),
        ("metadata.version=x", "Invalid version format: x for feature metadata.version"),
        ("metadata.version=99", "Unknown metadata.version 99"),
        ("group.version", "Invalid feature format: group.version. Expected format: 'feature=version'"),
    ],
)
def test_features_that_there_are_not(feature: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feature-dependencies", "-f", feature]) == 1
    assert capsys.readouterr().err.startswith(complaint)


def test_random_uuid_prints_one_that_can_be_a_cluster_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    uuid = parse_uuid(capsys.readouterr().out.strip())
    assert (uuid[6] >> 4, uuid[8] >> 6) == (4, 2)
