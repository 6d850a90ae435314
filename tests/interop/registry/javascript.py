"""Packages from npm's registry, installed once into the user's cache."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

PACKAGES = (
    "@confluentinc/schemaregistry@1.10.1",
    "@kafkajs/confluent-schema-registry@3.9.0",
    "kafkajs@2.2.4",
    "jest@29",
    "@jest/globals@29",
)


@cache
def packages() -> Path:
    """The directory that has `node_modules`."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla-javascript-clients-1"
    if not (home / "ready").exists():
        assert shutil.which("npm"), "this needs node and npm on PATH"
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}')
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
        subprocess.run(install, cwd=home, check=True, timeout=900, capture_output=True)
        (home / "ready").touch()
    return home


def run(*command: str, timeout_s: float = 300) -> str:
    """What a program prints. Its packages are those of the cache."""
    done = subprocess.run(command, cwd=packages(), capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr
