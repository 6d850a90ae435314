"""The worker: what Kafka Connect's does, on three topics in Kafka Connect's own formats.

    records             what stands in the topics of configurations, states and offsets, byte for byte
    state               what those records say: replaying them is all that changes it
    decisions           what a request comes to: records and a reply, or a refusal in Kafka Connect's words
    runs                which connectors run here: what the state wants, what the engine says, and the records of both
    connector_settings  settings that all connectors have, as rows of a page
    validation          a connector's configuration held against its settings, as `validate` shows it
    plugins             connectors, converters and transforms as the REST interface shows them
    config_providers    `${file:…}`, `${directory:…}` and `${env:…}`
    settings            a worker's properties under Kafka's names
    topics              the topics, created if they are not there
    shared_log          the same on a cluster: reading to the end, and writing as the one leader
    refusals            what is refused, with its status
    os_files            files as config providers read them
    sink_offsets        where a sink connector is: the offsets of its group
    log_levels          what `/admin/loggers` shows and changes
    secrets             values that are kept out of states, replies and logs
    worker              all of it together: leading, changes, and what the REST interface asks
    service, process    a worker at its listeners; in a process of its own, until it is told to stop

`records`, `state`, `decisions`, `runs`, `connector_settings` and `validation` are pure. The others have the world
through ports, so that a worker runs in a process of its own and in tests by the same lines.
"""
