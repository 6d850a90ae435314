"""What `connector.class` says, where one word is for two connectors: `spark` is a sink if it has topics to read."""

from collections.abc import Mapping
from typing import Final

SPARK: Final = "spark"
SPARK_SOURCE: Final = "ottla.connect.SparkSourceConnector"
SPARK_SINK: Final = "ottla.connect.SparkSinkConnector"


def class_name_of(config: Mapping[str, str | None]) -> str | None:
    """The class name; None if there is none."""
    name = config.get("connector.class")
    if name is None or name.strip() != SPARK:
        return name
    return SPARK_SINK if config.get("topics") or config.get("topics.regex") else SPARK_SOURCE
