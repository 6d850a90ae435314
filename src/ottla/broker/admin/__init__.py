"""What administrators ask of a broker. Most of what they ask is the controller's to decide: `cluster.forwarding`.

    topic_creation       topics that a client's mention makes
    replica_log_dirs     which directory a replica is in, and should be in
    quotas, scram        quotas and users' credentials, as they are stored
    acls                 rules of access, described
    delegation_tokens    tokens, described; what else is asked of them is passed on
    settings             settings of topics, brokers, groups and loggers

Import from the modules.
"""
