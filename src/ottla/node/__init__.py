"""The composition root: from a configuration to a running node. The only place that wires the parts together.

    run              a node until it is told to stop
    process_life     what runs in a process of its own: the loop, and the signals
    node             one node, wired; broker_server the broker on it, if it has one
    config           what a node is told to be; listeners where it listens
    metadata_quorum  its metadata log, opened
    cluster_log      what happens in the cluster, as lines of the node's log
    node_tls         TLS at its listeners and between nodes; node_sasl the same for SASL
    authorization    whether it has an authorizer, and the gate before its handlers
    real_world       one adapter for each port: clock, and those of other parts
    descriptors      how many files and connections it may have open
    registry_process a schema registry until it is told to stop; registry_inside beside a node; registry_keys its keys

The rooms:

    membership       joining the cluster, and leaving it
    limits           quotas and limits on connections, in force
    security         a listener's mechanisms, and this node's logins at others, from the settings
    storage          data directories: formatting them, and knowing whose they are
    metrics          the metrics page
    faults           faults on request (`ottla start --faults PORT`)
"""
