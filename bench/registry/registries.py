"""The two registries: how they are started, where they answer, what they cost."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from ottla.testing.free_ports import free_ports

APICURIO = "3.3.3"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{APICURIO}:tar.gz:all"
_WAIT_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Registry:
    """A process that serves schemas over HTTP."""

    name = ""
    prefix = ""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self.port = free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}{self.prefix}"

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> float:
        """Returns how many seconds it took until it answered."""
        began_s = time.perf_counter()
        with (self._directory / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._directory
            )
        while not self.answers("/subjects"):
            if self._process.poll() is not None or time.perf_counter() > began_s + _WAIT_S:
                raise SystemExit((self._directory / f"{self.name}.log").read_text()[-2000:])
            time.sleep(0.01)
        return time.perf_counter() - began_s

    def answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.place}{path}", timeout=10) as reply:
                return bool(reply.read())
        except (OSError, urllib.error.URLError):
            return False

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "it has been started"
        return self._process

    def processor_s(self) -> float:
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS

    def memory_mb(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(_WAIT_S)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(_WAIT_S)


class Ottla(Registry):
    name = "ottla"

    def __init__(self, bootstrap: str, directory: Path, **settings: object) -> None:
        super().__init__(bootstrap, directory)
        self._settings = {key.replace("_", "."): value for key, value in settings.items()}

    def command(self) -> list[str]:
        given = [word for key, value in self._settings.items() for word in ("--set", f"{key}={value}")]
        where = ["-b", self._bootstrap, "--port", str(self.port)]
        return [sys.executable, "-m", "ottla.cli.main", "registry", "start", *where, *given]


class Apicurio(Registry):
    """`storage` is where it keeps schemas: `kafkasql` has them in a topic, as ours; `mem` in memory alone."""

    name = "apicurio"
    prefix = "/apis/ccompat/v7"

    def __init__(self, bootstrap: str, directory: Path, storage: str) -> None:
        super().__init__(bootstrap, directory)
        self._storage = storage
        self._management = free_ports(1)[0]
        self._home = apicurio_home()

    def command(self) -> list[str]:
        settings = {
            "quarkus.http.port": self.port,
            "quarkus.http.host": "127.0.0.1",
            "quarkus.management.port": self._management,
            "quarkus.log.level": "WARN",
            "apicurio.storage.kind": self._storage,
            "apicurio.kafkasql.bootstrap.servers": self._bootstrap,
        }
        defined = [f"-D{key}={value}" for key, value in settings.items()]
        return [java(), *defined, "-jar", str(self._home / "quarkus-run.jar")]


def java() -> str:
    """One of 21 or newer: `JAVA_21` in the environment, or the first on PATH."""
    return os.environ.get("JAVA_21") or "java"


def apicurio_home() -> Path:
    """Where it is unpacked. Maven fetches it once."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"apicurio-registry-{APICURIO}"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        copying = ["mvn", "-q", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={place}"]
        subprocess.run(copying, check=True, cwd=place)
        archive = next(place.glob("*.tar.gz"))
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        archive.unlink()
        (place / "ready").touch()
    return place
