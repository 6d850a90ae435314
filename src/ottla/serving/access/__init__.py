"""Who may ask what: a step before the handler of each API, as Apache Kafka has it.

A node without an authorizer does not load this room: its handlers are called as they are. Checks of what only brokers
answer are in `ottla.broker.access`, those of controllers in `ottla.controller.access`.

`gate`                from a request to its check, and on to its handler
`check_shapes`        checks that many APIs share, and which check an API has; one without is served to nobody
`shared_checks`       checks of APIs that brokers and controllers both answer
`rights`              what one client may do
`denials`             the audit log: who was refused what
"""
