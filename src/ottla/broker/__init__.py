"""What a broker answers: one small module per API or family of APIs, from the decoded request to the reply.

    dispatch             from a request to its handler
    broker               `Broker`: the services, wired together; the node alone holds it
    services             how a handler gets the services that it names

The rooms, each with a map of its own:

    data                 records in and out
    partitions           the partitions that this node holds, with their moves and their cleaning
    groups               consumer groups
    transactions         producers and their transactions
    coordination         the driver of everything whose state is a log: groups and transactions
    replication          followers that fetch from leaders, and leaders that change their ISR
    admin                what administrators ask for, with settings
    quotas               how much clients may take
    telemetry            metrics that clients push
    cluster              the cluster as clients and controllers see it
    access               the checks before the handlers where there is an authorizer

Import from the modules.
"""
