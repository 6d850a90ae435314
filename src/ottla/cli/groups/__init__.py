"""Tools about groups.

`consumer_groups`  kafka-consumer-groups: what is asked for, in which order
`group_options`    its options
`group_tables`     what it prints; `describing` for --describe
`reset_offsets`    to where offsets are reset, of which partitions
`reset_times`      dates and durations
`groups`           kafka-groups: groups of all types
"""
