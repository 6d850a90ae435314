"""Consumer groups: one module per API. The machine is `ottla.machines.group`, its driver `ottla.broker.coordination`.

    join_group, sync_group, heartbeat, leave_group           the classic protocol
    consumer_group_heartbeat, consumer_group_describe        the consumer protocol (KIP-848)
    offset_commit, offset_fetch, offset_delete
    list_groups, describe_groups, delete_groups

Import from the modules.
"""
