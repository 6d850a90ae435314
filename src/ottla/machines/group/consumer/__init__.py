"""The consumer group protocol (KIP-848): the coordinator divides the work, and members follow at their own pace.

    member           one member: its subscription, its epoch, and what it has
    group            the group, which its records make
    heartbeats       what a heartbeat says, and whether it makes sense
    protocol         heartbeats, leaving, falling silent (timers)
    turn             what a member's request leads to: everything that makes records
    reconciling      from what a member has to what it is to have, without taking anything from anybody
    assignors        `uniform` and `range`; newcomers what `uniform` is for one more, at the price of its share
    subscriptions    what the members read, and whether it has changed (topic_hash)
    classic_members  members that speak the classic protocol, while a group is migrated
    records          the records themselves; replay what each does to its group
    describing       the group as clients see it

Import from the modules.
"""
