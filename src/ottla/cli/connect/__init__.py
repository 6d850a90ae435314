"""`ottla connect`, `connect-standalone` and `connect-distributed`: a worker, and what people do with one.

    command              the words of `ottla connect`
    connect_distributed, connect_standalone    Kafka's commands of these names
    starting             a worker in this process, distributed or standalone; connectors from files, once
    connector_files      connectors in files: properties, JSON, YAML
    rest_client          what the others ask a running worker
    applying             `apply`: the difference between a directory and a worker, and making it so
    validating           `validate`: a file held against its connector's settings, without a worker
    status               `status`: what connectors do, once or live

Spark and connectors are imported when a worker starts, and by no other command.
"""
