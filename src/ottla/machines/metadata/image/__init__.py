"""Everything the `__cluster_metadata` log says, one file a kind of record; `replay` is the only mutator.

    metadata_image       the whole
    delta                what a batch of records changed
    topics_image, partition_image, brokers_image, configs_image, features, quotas_image, producer_ids_image
    security_image       access control entries, SCRAM credentials and tokens, kept as they came
    directory_ids        ids of log directories that stand for no directory
    metadata_errors

Import from the modules.
"""
