"""Where Spark finds the data source `ottla` by itself: it looks for a `DefaultSource` in modules named `pyspark_*`."""

from ottla.spark.data_source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
