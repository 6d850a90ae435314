"""`ottla verify`: every batch of a data directory, or of a running cluster, and all that must agree with them.

verify           the command
problems         what is found; levels, and what to do
batch_order      what one batch may follow another: offsets, epochs, producers, transactions
segment_check    a segment's batches, and its indexes beside them
partition_check  a partition's segments, epochs and snapshots
directory_check  the partitions of a data directory, and its checkpoints
cluster_check    the replicas of a running cluster, read side by side
"""
