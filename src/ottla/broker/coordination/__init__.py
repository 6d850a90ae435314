"""Coordinators whose state is a log: groups over `__consumer_offsets`, transactions over `__transaction_state`.

    coordinators             what the broker holds: one coordinator a topic, which hear of leadership and metadata
    topic_coordinator        one of them: from a key to the partition that decides about it
    coordinated_partition    one partition's machine: loading, deciding, timers, what is broken
    coordinator_log          the end of its log: gathering, appending, telling when it is committed
    gathering                commands whose records are bytes, taken into the open batch by compiled code
    gathered_batch           the batch that is open, and who waits for it; uncommitted: for one that is written
    named_timers             the machines' timers on the loop's
    loading                  replaying a log into a machine, in slices
    waiters                  requests that are parked until a later decision
    find_coordinator         which node coordinates a group or a transactional id
    placement                which partition a key belongs to

The machines themselves are pure, in `ottla.machines.group` and `ottla.machines.transaction`; their shape is
`ottla.machines.coordinator_machine`.
"""
