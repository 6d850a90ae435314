"""A node's data directories: formatting them, and knowing whose they are.

    meta_properties      whose a directory is
    data_directories     finding them, and formatting them where nobody configured anything
    formatting           what a directory needs before a node's first start
    format_features, format_scram, format_voters     what formatting is given
    bootstrap            `bootstrap.checkpoint`
    storage_info         what `kafka-storage info` tells

Import from the modules.
"""
