"""What administrators ask for. Most of it is the controller's to decide, and goes there.

    topics, elections, reassignments, topic_creation (topics that a client's mention makes)
    replica_log_dirs     which directory a replica is in, and should be in
    update_features, unregister_broker, quotas, scram
    settings             settings of topics, brokers, groups and loggers

Import from the modules.
"""
