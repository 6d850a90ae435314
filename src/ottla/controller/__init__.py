"""The controller's side of a node: what its listeners answer, and what the brokers of its cluster ask of it.

    controller_server       `ControllerServer`: what every answer is given
    controller_apis         from a request to what answers it, from any client
    committed_decisions     what the controller machine decides, and how long its client waits for that
    alter_configs           settings: those of this node's loggers are changed here
    alter_client_quotas     quotas: names of hosts are looked up first
    mutation_quotas         the limit on changes of the cluster
    update_features         levels of features, kraft.version among them
    acl_requests            rules of access; access who may ask what of a controller
    delegation_tokens       tokens, for those who may have them
    change_log              who changed what, as lines of the log
    described               settings and users, described from the metadata
    describe_quorum         the voters, and how far they are
    quorum_requests         what other replicas of the metadata log ask
    voter_requests          adding and removing voters
    timed_decisions         what is decided because time has passed
    broker_tethers          brokers whose processes have ended, noticed at once
    controller_listener     what only a connection can ask: ApiVersions, DescribeCluster
    envelope                requests that a broker passes on for its clients (KIP-590)

Nothing here needs a broker: a node may be a controller alone. Import from the modules.
"""
