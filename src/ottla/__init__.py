"""ottla: Apache Kafka's system in Python. See README.md for the tour and ARCHITECTURE.md for the map."""

__version__ = "0.1.0.dev0"
