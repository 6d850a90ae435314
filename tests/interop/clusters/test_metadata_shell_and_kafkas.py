"""Our metadata shell and Apache Kafka's, on the same files with the same lines typed, print the same.

The differences that remain, all meant: the program's own version and commit, help in our words, and quotas of default
entities, which Kafka gives the names of others.
"""

import io
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from ottla.cli.metadata_shell.shell import main
from tests.interop.apache_kafka import QUICK_START, VERSION, libraries

pytestmark = pytest.mark.interop

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop-shell</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-shell</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""
_TRIES = 4
TIMEOUT_S = 120

LINES = r"""
pwd
ls
ls image
ls -l image
ls /image/topics/byName
ls nothing
ls image local
ls {image,local}
ls imag[e]
ls 'image/features' "image/scram"
ls image/*/byName
ls image/topics/byName/*/0
cd nothing
cd image/provenance
cat nothing
cat image
cat image/topics/byName/*/id image/producerIds
cd image
pwd
cd topics/byName
ls
ls */
cd ../../..
cd ..
pwd
cd image/top*/by?ame
pwd
cd
pwd
find image/features image/scram
find image/features/metadataVersion
find nothing
find
tree image
tree image/topics image/provenance
tree nothing
tree
history
history 3
history -1
bogus
cat
cd a b
pwd extra
"quoted thing
exit
"""


@cache
def shell_libraries() -> Path:
    """The shell has a jar of its own that no other tool needs."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"apache-kafka-{VERSION}-shell"
    ready, jars = home / "ready", home / "libs"
    if not ready.exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "pom.xml").write_text(POM.format(version=VERSION))
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(copy, cwd=home, check=True, timeout=TIMEOUT_S)
        ready.touch()
    return jars


def kafkas(path: Path, *command: str, lines: str = "") -> str:
    class_path = f"{shell_libraries()}/*:{libraries()}/*"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    java = ["java", *QUICK_START, quiet, "-cp", class_path, "org.apache.kafka.shell.MetadataShell"]
    shell = subprocess.run(
        [*java, "--snapshot", str(path), *command], input=lines, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    return shell.stdout


def snapshots() -> list[Path]:
    """But for the one that holds voters and no metadata: Kafka's shell waits for the metadata for ever."""
    found = sorted(GOLDEN.glob("*/__cluster_metadata-0/*.checkpoint"))
    return [path for path in found if not path.name.startswith("0" * 20)]


def first_segments() -> list[Path]:
    return sorted(GOLDEN.glob("*/__cluster_metadata-0/00000000000000000000.log"))


def assert_the_same_is_printed(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(LINES))
    main(["--snapshot", str(path)])
    assert capsys.readouterr().out.split("\n") == kafkas(path, lines=LINES).split("\n")


@pytest.mark.parametrize("path", [*snapshots(), *first_segments()], ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_golden_metadata_looks_the_same(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_the_same_is_printed(path, capsys, monkeypatch)


def test_every_kind_of_record_looks_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.unit.cli.rich_metadata import write_snapshot

    assert_the_same_is_printed(write_snapshot(tmp_path), capsys, monkeypatch)


@pytest.mark.parametrize("command", [["ls", "image"], ["cat", "nothing"], ["cd", "image"], ["find"], ["tree"]])
def test_a_single_command_prints_the_same(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.unit.cli.rich_metadata import write_snapshot

    path = write_snapshot(tmp_path)
    assert main(["--snapshot", str(path), *command]) == 0
    ours = capsys.readouterr().out
    # Kafka's shell looks while it still loads, and on a busy machine finds only a part.
    theirs = next((one for _ in range(_TRIES) if (one := kafkas(path, *command)) == ours), None)
    assert ours == (kafkas(path, *command) if theirs is None else theirs)
