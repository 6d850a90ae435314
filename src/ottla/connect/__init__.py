"""Connectors: what Kafka Connect does, on columns of Arrow.

    errors      what goes wrong: data that cannot be converted, settings that are wrong
    data        Connect's schemas, columns and records, on Arrow

Needs pyarrow (`ottla[arrow]`). All of it is pure: no clock, network, disk or thread.
"""
