"""Spark with its own Kafka connector, in an environment of its own, to be run beside ours.

The newest connector whose jars Maven Central has complete is 4.0.0, which needs PySpark 4.0.0: another than ours. So a
virtual environment with it and a folder with the jars are made once, in `$XDG_CACHE_HOME`, and programs run there as
processes. Needs `java` and `mvn`.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

VERSION = "4.0.0"
PACKAGES = (f"pyspark=={VERSION}", "pyarrow>=18", "pandas>=2.2,<3")
OWN_JARS = ("spark-sql-kafka", "spark-avro", "spark-token-provider", "kafka-clients", "commons-pool2")
"""The rest of what Maven brings is in PySpark already."""

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.spark</groupId><artifactId>spark-avro_2.13</artifactId><version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""


@cache
def home() -> Path:
    """Where both are; made if they are not there yet, which takes minutes."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"ottla-spark-{VERSION}-with-avro"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "pom.xml").write_text(POM)
        subprocess.run(["mvn", "-q", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=place, check=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
        pip = [sys.executable, "-m", "pip", "--python", place / "venv" / "bin" / "python", "install", "--quiet"]
        subprocess.run([*pip, *PACKAGES], check=True)
        (place / "ready").touch()
    return place


def python() -> Path:
    return home() / "venv" / "bin" / "python"


def jars() -> str:
    """For the setting `spark.jars`."""
    return ",".join(str(jar) for jar in sorted((home() / "jars").glob("*.jar")) if jar.name.startswith(OWN_JARS))


def environment() -> dict[str, str]:
    """Of a process that runs there: nothing of our own environment may show."""
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYSPARK_PYTHON": str(python()), "SPARK_LOCAL_IP": "127.0.0.1"}
