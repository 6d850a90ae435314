"""Settings that are given at run time.

    setting_checks       whether they can be taken
    effective_settings   what counts for a topic on this node

Import from the modules.
"""
