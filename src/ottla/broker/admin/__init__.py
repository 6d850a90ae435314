"""What administrators ask of a broker. Most of what they ask is the controller's to decide: `cluster.forwarding`.

    topic_creation       topics that a client's mention makes
    replica_log_dirs     which directory a replica is in, and should be in
    quotas               quotas, as they are stored
    described            settings, users and rules of access, described
    alter_configs        changes of settings, of which the node's own loggers are made here
    config_resources     what has settings
    delegation_tokens    tokens, described; what else is asked of them is passed on

Import from the modules.
"""
