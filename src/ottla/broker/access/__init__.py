"""Who may ask what of a broker: a step before the handler of each API, as Apache Kafka has it.

A node without an authorizer does not load this room: its handlers are called as they are.

`gate`                from a request to its check, and on to its handler
`checks`              which check an API has; one without is served to nobody
`check_shapes`        checks that many APIs share
`rights`              what one client may do
`denials`             the audit log: who was refused what
`data_checks`         produce, fetch, offsets of logs
`group_checks`        groups and their offsets
`transaction_checks`  transactional ids and producers
`cluster_checks`      metadata, topics and what may be known of them
`token_checks`        delegation tokens of others
`setting_checks`      settings of topics, brokers and groups
"""
