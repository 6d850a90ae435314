"""The I/O shell: connections, timers, disk workers, and the drivers that perform what machines decide.

Connections

    server             listeners and the connections they accept
    admission          how many connections there may be, and how often they may come
    connection         one client's: joins exchange (`ottla.wire.exchange`), transport and session
    session            how much a client may have under way, and how it is made to wait
    request            what handlers are given
    pending_request    a request until its one reply
    outbox             bytes and files on their way out
    network, tcp       turns over sockets; plain TCP, and connecting to others
    tls                TLS at the listeners: a room of its own; authentication the gate of those with SASL
    large_requests     requests of very many entries: a room of its own
    loop               what is ready, what is due, what other threads bring: the rounds of a node
    selector           waiting without going to sleep at every short pause
    request_metrics    counts and times; rate_limited_log lines that anybody can cause, a few at a time
    channels           asking the controller and other brokers; peers their connections: a room of its own

The world

    world              everything that a node is given, as one
    attribution        which request the loop works for
    apart              work that continues whatever its callbacks raise; what they have raised is in rate_limited_log
    timers, workers    time on the loop; threads that wait for the disk
    procedure          a start or a stop that waits, on any world
    cleaner_process    cleaning in another process; cleaner_worker what runs there
    http               HTTP servers on the network: a room of its own; exposition the metrics page
    metadata           the metadata log: a room of its own
"""
