"""Settings at run time: described, changed, and taken up by this node.

    describe_configs, config_entries, config_resources       what is set, where it comes from, and for what
    alter_configs        changes, of which the node's own loggers are made here (logger_changes)
    node_settings        this node's settings as they are now (KIP-226)
    loggers              the loggers and their levels

Import from the modules.
"""
