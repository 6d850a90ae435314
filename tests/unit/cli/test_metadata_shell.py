"""The metadata as directories and files. What Apache Kafka's shell prints is compared in tests/interop."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import __version__
from ottla.cli.metadata_shell.commands import Leave, Session, completions
from ottla.cli.metadata_shell.image_tree import tree_of
from ottla.cli.metadata_shell.reading import read_metadata
from ottla.cli.metadata_shell.shell import main
from tests.unit.cli.rich_metadata import quota, write_snapshot

Shell = Callable[..., list[str]]
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-4.3.1" / "clean"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_snapshot(tmp_path_factory.mktemp("metadata"))


def session_of(path: Path, printed: list[str]) -> Session:
    return Session(tree_of(read_metadata(str(path))), lambda text: printed.extend(text.split("\n")), is_prompt=True)


@pytest.fixture
def shell(snapshot: Path) -> Shell:
    printed: list[str] = []
    session = session_of(snapshot, printed)

    def run(*words: str) -> list[str]:
        printed.clear()
        session.run(words)
        return list(printed)

    return run


def test_the_root_has_the_image_and_the_program(shell: Shell) -> None:
    assert shell("ls") == ["image", "local"]
    assert shell("cat", "local/version") == [__version__]


def test_a_partition_is_a_file_of_its_topic(shell: Shell) -> None:
    names = ["0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9", "id", "name"]
    assert shell("ls", "image/topics/byName/a.b_c") == names
    [line] = shell("cat", "/image/topics/byName/a.b_c/1")
    assert line == (
        "PartitionRegistration(replicas=[3, 1], directories=[AAAAAAAAAAAAAAAAAAAAAw, AAAAAAAAAAAAAAAAAAAAZA], isr=[3], "
        "removingReplicas=[1], addingReplicas=[3], elr=[], lastKnownElr=[], leader=-1, "
        "leaderRecoveryState=RECOVERING, leaderEpoch=4, partitionEpoch=6)"
    )


def test_a_topic_is_there_by_its_id_too(shell: Shell) -> None:
    assert shell("cat", "image/topics/byId/*/name", "image/topics/byName/a.b_c/id") == [
        "a.b_c",
        "AAAAAAAAAAAAAAAAAAAAyA",
    ]


def test_walking_about(shell: Shell) -> None:
    assert shell("cd", "image/topics") == []
    assert shell("pwd") == ["/image/topics"]
    shell("cd", "../configs")
    assert shell("pwd") == ["/image/configs"]
    assert shell("cat", "TOPIC:a.b_c/retention.ms") == ["50000"]
    shell("cd")
    assert shell("pwd") == ["/"]


def test_above_the_root_is_the_root(shell: Shell) -> None:
    assert shell("ls", "../..") == ["image", "local"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("ls", "nothing"), "ls: nothing: no such file or directory."),
        (("cat", "nothing"), "cat: nothing: No such file or directory."),
        (("cat", "image"), "cat: image: Is a directory"),
        (("cd", "nothing"), "cd: nothing: no such directory."),
        (("cd", "local/version"), "cd: local/version: not a directory."),
        (("cat",), "too few arguments"),
        (("pwd", "more"), "unrecognized arguments: 'more'"),
        (("ls", "-l"), "unrecognized arguments: '-l'"),
        (("man", "cow"), "man: unknown command cow. Type help to get a list of commands."),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], complaint: str, shell: Shell) -> None:
    assert shell(*words) == [complaint]


def test_patterns_stand_for_several_nodes(shell: Shell) -> None:
    assert shell("ls", "{imag?,local}") == ["image:", *shell("ls", "image"), "", "local:", *shell("ls", "local")]
    assert shell("cat", "image/configs/TOPIC:*/retention.ms") == ["50000", ""]
    assert shell("ls", "imag[e]") == ["ls: imag[e]: no such file or directory."]
    assert shell("ls", "{image") == ["ls: {image: no such file or directory."]


def test_files_are_listed_before_directories(shell: Shell) -> None:
    assert shell("ls", "local", "image/provenance") == ["provenance", "", "local:", "commitId", "version"]


def test_find_prints_every_path(shell: Shell) -> None:
    assert shell("find", "image/features") == [
        "image/features",
        "image/features/finalized_group.version",
        "image/features/metadataVersion",
    ]
    everything = shell("find")
    assert everything[:2] == [".", "./image"]
    assert "./image/delegationToken/tok1" in everything


def test_tree_shows_what_is_in_files(shell: Shell) -> None:
    assert shell("tree", "image/clientQuotas/ip*", "image/features/metadataVersion") == [
        "connection_creation_rate:",
        "  20.0",
        "Optional[4.3-IV0]",
    ]


def test_a_default_entity_has_a_name_of_its_own(tmp_path: Path) -> None:
    default = quota({"user": None}, "producer_byte_rate", 7)
    of_user = quota({"user": "alice", "client-id": None}, "producer_byte_rate", 8)
    printed: list[str] = []
    session_of(write_snapshot(tmp_path, default, of_user), printed).run(["ls", "image/clientQuotas"])
    assert [name for name in printed if "()" in name] == ["clientId()_user(alice)", "user()"]


def test_history_is_numbered_from_the_first_line(snapshot: Path) -> None:
    printed: list[str] = []
    session = session_of(snapshot, printed)
    session.history += ["ls", "pwd", "history 2"]
    session.run(["history", "2"])
    assert printed == ["    1  pwd", "    2  history 2"]


def test_every_command_says_how_it_is_used(shell: Shell) -> None:
    assert shell("man", "cd")[0] == "cd: Go to another directory."
    assert "usage: cd [target]" in shell("man", "cd")
    assert any(line.split()[:1] == ["tree"] for line in shell("help"))


def test_exit_leaves(shell: Shell) -> None:
    with pytest.raises(Leave):
        shell("exit")


def test_names_stand_in_columns_on_a_terminal(snapshot: Path) -> None:
    printed: list[str] = []
    session = session_of(snapshot, printed)
    session.columns = 44
    session.run(["ls", "image/scram", "image"])
    assert "SCRAM-SHA-256  SCRAM-SHA-512" in printed
    assert max(map(len, printed)) <= 44


def test_paths_are_completed(snapshot: Path) -> None:
    session = session_of(snapshot, [])
    assert completions(session, "im") == ["image/"]
    assert completions(session, "image/pro") == ["image/producerIds/", "image/provenance"]
    assert completions(session, "nothing/x") == []


# The command


def test_one_command_is_run_without_a_prompt(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--snapshot", str(snapshot), "cat", "image/producerIds/nextProducerId"]) == 0
    assert capsys.readouterr().out == "77\n"
    assert main(["--snapshot", str(snapshot), "cd", "image"]) == 0
    assert "invalid choice: 'cd' (choose from 'cat', 'find', 'ls', 'tree')" in capsys.readouterr().out


def test_lines_are_read_until_exit(
    snapshot: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("cd image\npwd\n\nls 'scram'\nexit\npwd\n"))
    assert main(["-s", str(snapshot)]) == 0
    told = "Loading...\nStarting...\n[ Kafka Metadata Shell ]\n>> >> /image\n>> >> SCRAM-SHA-256\nSCRAM-SHA-512\n>> "
    assert capsys.readouterr().out == told


def test_a_file_that_cannot_be_read_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--snapshot", str(tmp_path / "nothing"), "ls"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    (tmp_path / "bad.checkpoint").write_bytes(b"\0" * 200)
    assert main(["--snapshot", str(tmp_path / "bad.checkpoint"), "ls"]) == 1
    assert "bad.checkpoint" in capsys.readouterr().err


def test_a_directory_without_metadata_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--directory", str(tmp_path), "ls"]) == 1
    assert "no snapshot and no segment" in capsys.readouterr().err


def test_a_directory_is_its_newest_snapshot_and_the_log_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a node that ran, was stopped and had taken a snapshot: written by Apache Kafka."""
    for directory in (GOLDEN, GOLDEN / "__cluster_metadata-0"):
        assert main(["--directory", str(directory), "ls", "image/topics/byName"]) == 0
        assert "create-time\n" in capsys.readouterr().out
    assert main(["--directory", str(GOLDEN), "cat", "image/provenance"]) == 0
    assert capsys.readouterr().out.startswith("offset ")
