"""Builds what a release is made of, and tries each of it in empty environments: `make dist`.

    python tools/dist.py                     build into dist/, and try everything
    python tools/dist.py --only 3.12         one version of Python

What is built: a source distribution, and for each version of Python a wheel with the compiled modules, made from that
source distribution. What is tried, for each version of Python, in a virtual environment that has nothing but pip:

    wheel              as nearly everybody gets it; needs no compiler
    sdist              where pip finds no wheel, and there is a C compiler
    sdist, no compiler where there is none: PATH has no program but Python's own, and the pure-Python twins do the work.
                       The wheel that pip makes of it is tagged py3-none-any

In each of them a node is started, written to and read from, by the commands and by a program. A table at the end says
what worked; the exit code is 0 if all did. Nothing is published: CONTRIBUTING.md says how a version is released.
"""

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
PYTHONS: Final = ("3.11", "3.12", "3.13")
COMPILED: Final[tuple[str, ...]] = ast.literal_eval(
    re.findall(r"^COMPILED = (\(.*?^\))", (ROOT / "setup.py").read_text(), re.DOTALL | re.MULTILINE)[0]
)
"""All of them, as the build has them: a wheel without one works all the same, several times slower."""
VERSION: Final[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MADE_BY_SETUPTOOLS: Final = re.compile(r"PKG-INFO|setup\.cfg|src/ottla\.egg-info/.*")
WAIT_S: Final = 600
"""For one command; an installation on a busy machine takes minutes."""

PROGRAM: Final = """
import sys, ottla

with ottla.Producer(bootstrap_servers=sys.argv[1], compression_type="zstd") as producer:
    for number in range(1000):
        producer.send("numbers", b"%d" % number, key=b"%d" % (number % 7))
with ottla.Consumer(bootstrap_servers=sys.argv[1], group_id="dist", auto_offset_reset="earliest") as consumer:
    consumer.subscribe(["numbers"])
    seen = set()
    while len(seen) < 1000:
        records = consumer.poll(timeout=30)
        assert records, f"only {len(seen)} of 1000 records came"
        seen |= {int(record.value) for record in records}
assert seen == set(range(1000))
print("read", len(seen))
"""

PRESENT: Final = """
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
import ottla

# Not by importing: some have packages around them that need an extra.
site = Path(ottla.__file__).parent.parent
for name in sys.argv[1:]:
    if any((site / (name.replace(".", "/") + suffix)).exists() for suffix in EXTENSION_SUFFIXES):
        print(name)
"""


class Failed(Exception):
    """A step did not do what it must; the text is for people."""


class Trial(NamedTuple):
    python: str
    what: str
    artifact: Path
    has_compiler: bool
    is_compiled: bool


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds a release, and tries it in empty environments.")
    parser.add_argument("--only", choices=PYTHONS, action="append", help="this version of Python alone")
    pythons = parser.parse_args().only or PYTHONS
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        interpreters = {version: interpreter(version) for version in pythons}
        trials = list(built(interpreters))
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    rows = [(trial, outcome(trial, interpreters[trial.python])) for trial in trials]
    print()
    for trial, (worked, said) in rows:
        print(f"{'ok' if worked else 'FAILED':6}  Python {trial.python:4}  {trial.what:18}  {said}")
    print(f"\n{sum(worked for _, (worked, _) in rows)} of {len(rows)} worked; see {DIST.relative_to(ROOT)}/")
    return 0 if all(worked for _, (worked, _) in rows) else 1


def interpreter(version: str) -> str:
    """From PATH, or one that pyenv has; a shim of pyenv's may be on PATH for a version that is not switched on."""
    found = [name] if (name := shutil.which(f"python{version}")) else []
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True).stdout.strip()
        found += map(str, sorted(Path(root, "versions").glob(f"{version}.*/bin/python{version}")))
    for candidate in found:
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    raise Failed(f"there is no python{version}, on PATH or in pyenv: install it, or name those to try with --only")


def built(interpreters: Mapping[str, str]) -> Iterator[Trial]:
    shutil.rmtree(DIST, ignore_errors=True)
    tell("building the source distribution")
    run([sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT])
    source = DIST / f"ottla-{VERSION}.tar.gz"
    check_source(source)
    for version, python in interpreters.items():
        tell(f"building the wheel for Python {version}, from the source distribution")
        with environment(python) as venv:
            run([venv / "bin" / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", DIST, source])
        (wheel,) = DIST.glob(f"ottla-{VERSION}-cp{version.replace('.', '')}-*.whl")
        yield Trial(version, "wheel", wheel, has_compiler=False, is_compiled=True)
        yield Trial(version, "sdist", source, has_compiler=True, is_compiled=True)
        yield Trial(version, "sdist, no compiler", source, has_compiler=False, is_compiled=False)


def check_source(source: Path) -> None:
    """It has what git has under `src` and nothing that lay about; what it does not have cannot be built from it."""
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    listing = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT)
    known = set(listing.splitlines())
    wanted = {name for name in known if name.startswith("src/") and (ROOT / name).is_file()}
    problems = [f"it lacks {name}" for name in sorted(wanted - names)]
    problems += [f"it has {name}" for name in sorted(names - known) if not MADE_BY_SETUPTOOLS.fullmatch(name)]
    if problems:
        raise Failed("\n".join([f"{source.name} is not what git has:", *problems]))


def outcome(trial: Trial, python: str) -> tuple[bool, str]:
    tell(f"Python {trial.python}: {trial.what}")
    began = time.monotonic()
    try:
        with environment(python) as venv:
            try_out(trial, venv)
    except (Failed, OSError, subprocess.SubprocessError) as problem:
        print(problem, file=sys.stderr)
        return False, str(problem).partition("\n")[0]
    kind = "compiled" if trial.is_compiled else "pure Python"
    return (
        True,
        f"{trial.artifact.name}, {kind}; installed, started, written to, read from; {time.monotonic() - began:.0f} s",
    )


def try_out(trial: Trial, venv: Path) -> None:
    scripts, work = venv / "bin", venv.parent
    everywhere = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "OTTLA_"))
    }
    everywhere["PIP_NO_CACHE_DIR"] = "1"  # pip keeps a wheel that it built, and would take it for the next trial
    variables = {**everywhere, "PATH": str(scripts)}
    # Only what is installed is used: neither this checkout nor programs of the machine's can help out.
    building = {**everywhere, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"} if trial.has_compiler else variables
    artifact = trial.artifact if trial.is_compiled else wheel_without_a_compiler(trial.artifact, venv, building)
    run([scripts / "pip", "install", "--quiet", artifact], cwd=work, env=building)

    def command(*words: str, given: str = "") -> str:
        return run([scripts / words[0], *words[1:]], cwd=work, env=variables, given=given)

    expect("the version", command("ottla", "--version"), f"ottla {VERSION}\n")
    found = command("python", "-c", PRESENT, *COMPILED).split()
    expect("the compiled modules", found, list(COMPILED) if trial.is_compiled else [])
    with started([scripts / "ottla", "start", "--port", "0"], work, variables) as banner:
        expect("the banner's word of pure Python", "pure Python" in banner, not trial.is_compiled)
        bootstrap = re.findall(r"is ready at (\S+)", banner)[0]
        command("kafka-topics", "--bootstrap-server", bootstrap, "--create", "--topic", "lines")
        command("ottla", "produce", "-b", bootstrap, "-q", "lines", given="one\ntwo\nthree\n")
        expect("what was read", command("ottla", "consume", "-b", bootstrap, "-q", "lines"), "one\ntwo\nthree\n")
        expect("what the program printed", command("python", "-c", PROGRAM, bootstrap), "read 1000\n")
    # A second start reads what the first has left.
    with started([scripts / "ottla", "start", "--port", "0"], work, variables) as banner:
        bootstrap = re.findall(r"is ready at (\S+)", banner)[0]
        expect("what a restart kept", command("ottla", "consume", "-b", bootstrap, "-q", "lines"), "one\ntwo\nthree\n")


def wheel_without_a_compiler(source: Path, venv: Path, variables: Mapping[str, str]) -> Path:
    """It is for every machine and says so by its name, and the build says what it left out."""
    directory = venv.parent / "wheels"
    log = venv.parent / "build.log"
    words: list[str | Path] = [
        venv / "bin" / "pip",
        "wheel",
        "--log",
        log,
        "--no-deps",
        "--wheel-dir",
        directory,
        source,
    ]
    run(words, cwd=venv.parent, env=variables)
    expect("the build's word of what it left out", "built WITHOUT the compiled modules" in log.read_text(), True)
    (wheel,) = directory.iterdir()
    expect("the wheel's name", wheel.name, f"ottla-{VERSION}-py3-none-any.whl")
    return wheel


@contextmanager
def environment(python: str) -> Iterator[Path]:
    """An empty virtual environment, in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="ottla-dist-", ignore_cleanup_errors=True) as directory:
        venv = Path(directory) / "venv"
        run([python, "-m", "venv", venv])
        yield venv


@contextmanager
def started(words: list[str | Path], work: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """A node that runs meanwhile; gives what it printed when it was ready."""
    process = subprocess.Popen(words, cwd=work, env=variables, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while not (lines and "Ctrl-C" in lines[-1]):
            if not (line := process.stdout.readline()):
                raise Failed(f"the node ended at its start, with {process.wait()}: {''.join(lines)}")
            lines.append(line)
        yield "".join(lines)
        process.send_signal(signal.SIGINT)
        expect("the node's exit code", process.wait(WAIT_S), 0)
    finally:
        process.kill()
        process.wait()


def run(words: list[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None, given: str = "") -> str:
    done = subprocess.run(
        words, cwd=cwd, env=env, input=given, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise Failed(f"{what}: expected {wanted!r}, got {got!r}")


def tell(text: str) -> None:
    print(f"==> {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
