"""A local Spark session with what pipelines need. On a cluster, a session of the user's own does as well."""

import os
import re
import sys
from typing import TYPE_CHECKING

from ottla.spark.java import java_home
from ottla.spark.options import secret_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"

SETTINGS = {
    # Spark prints the options of a write in its plans, and hides those whose names match. Of its own accord it knows
    # passwords and tokens, and neither JAAS nor keys.
    "spark.sql.redaction.options.regex": f"(?i)url|{'|'.join(map(re.escape, secret_options()))}",
    "spark.sql.session.timeZone": "UTC",
    # Off by default in Spark 4; without it, filters on partition, offset and timestamp read everything first.
    "spark.sql.python.filterPushdown.enabled": "true",
    # transformWithState works with no other.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Rows of Python reach Java a third sooner than by TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # The pieces in which Java reads what Python has written: of 64 KB, it and the worker wake each other too often.
    "spark.buffer.size": str(256 << 10),
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
}
"""What `session` sets where the caller says nothing else."""


def session(name: str = "ottla", *, master: str | None = None, **settings: object) -> "SparkSession":
    """The running session, or a new one in this process: `ottla.spark.session(master="local[4]")`.

    `settings` are Spark's, with underscores for dots where they are keywords; names with capitals or hyphens come as
    `**{"spark.executor.memory": "2g"}`. Without a `master` it is MASTER's in the environment, or all cores of this
    machine. Workers run this interpreter, which therefore has ottla. Spark's web page listens on the loopback address.
    """
    environment = os.environ
    if "SPARK_REMOTE" not in environment:
        environment["JAVA_HOME"] = str(java_home(environment))
    environment.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # Spark asks PATH for `python3` otherwise, which rarely is the virtual environment's.
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master or environment.get("MASTER") or "local[*]")
    given = {(key if "." in key else key.replace("_", ".")): value for key, value in settings.items()}
    for key, value in {**SETTINGS, **given}.items():
        builder = builder.config(key, str(value).lower() if isinstance(value, bool) else str(value))
    return builder.getOrCreate()
