"""Settings that are given at run time.

    setting_checks       whether they can be taken
    effective_settings   what counts for a topic on this node
    group_settings       settings of groups and of client metrics subscriptions

Import from the modules.
"""
