"""Connectors: what Kafka Connect does, on columns of Arrow.

    errors      what goes wrong: data that cannot be converted, settings that are wrong
    data        Connect's schemas, columns and records, on Arrow
    options     options of converters and transforms, from rows of settings, refused in Kafka's words
    java_text   what Java's `toString` says of a value
    converters  bytes of keys and values to columns, and back
    transforms  Kafka's transforms and predicates, and a connector's chain of them

Needs pyarrow (`ottla[arrow]`). All of it is pure: no clock, network, disk or thread.
"""
