"""Producer, consumer and admin: cores without I/O, under a blocking and an asyncio face.

    errors            what clients raise
    settings          from keywords, a mapping or a file to checked values
    serialization     keys and values to bytes and back
    interceptors      objects of the application's that see every record
    topic_partition   partitions, places in them, brokers
    promise           what will be known later; coroutines without a loop
    client_log        what goes to the application's log, and how often
    world             the ports that a client is given
    protection        what `security.protocol` asks for; login/ what is shown to brokers then
    network/          one connection to each broker
    cluster/          metadata, and which broker to ask
    telemetry         metrics that are pushed to brokers
    membership/       being a member of a group
    producer/         a producer without I/O; consumer/ and admin/ the same
    schema_registry/  a client of schema registries without I/O; http/ how it asks them
    blocking/         the face of all of them that waits; aio/ that of asyncio
    io/               the real ports: sockets, threads, asyncio, clocks, chance

Import from the modules; this package imports nothing, so that a program pays only for what it uses.
"""
