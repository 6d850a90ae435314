"""The schema registry: a machine over the topic `_schemas`, a driver on our client, and an HTTP front.

The machine, without I/O:

    subjects         names and contexts; entities metadata, rule sets and guids; json_form how they are written
    records          the topic's records, byte for byte
    state            what the topic says, made by `replay` alone
    decisions        what a request that changes something comes to: records and a reply
    lookups          whether a schema is there already
    same_texts       whether two texts are one schema in two forms
    texts            texts of schemas, parsed and compared by workers
    refusals         errors by Confluent's codes

The driver, on our client:

    topic            `_schemas`, created or looked at
    driver           reads the topic into the state, and writes what is decided while this registry leads
    election         which of several leads; log_writer the epochs that make sure of it
    forwarding       changes passed on to the one that leads

The front:

    front            HTTP: who asks, what they get, in which form
    api              one row for each operation; requests what they say; replies what is said
    access           who may do what; security how that is found out; listener_tls
    metrics          the page of metrics

`registry` puts them together, from `settings`. A node without a registry loads nothing of this.
"""
