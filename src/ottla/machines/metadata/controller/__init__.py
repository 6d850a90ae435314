"""The controller: it reads its image and decides on records. The families of decisions are `..decisions`.

    controller           requests and the clock in, decisions out
    controller_context   what decisions look at
    activation           what a controller writes first
    broker_sessions      when each broker was last heard of
    leadership           partition changes that follow from brokers coming and going
    partition_change     one partition's change: its leader, its ISR, the record that says so
    replica_placement    where new replicas go

Import from the modules.
"""
