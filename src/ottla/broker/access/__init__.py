"""Who may ask what of a broker: the checks before its handlers. What they are made of is in `ottla.serving.access`.

A node without an authorizer does not load this room: its handlers are called as they are.

`data_checks`         produce, fetch, offsets of logs
`group_checks`        groups and their offsets
`transaction_checks`  transactional ids and producers
`cluster_checks`      metadata, topics and what may be known of them
`admin_checks`        settings of this node, delegation tokens of others
"""
