"""The directory `__cluster_metadata-0`, in Apache Kafka's formats.

store               the log, its snapshots and its quorum state, opened as one
metadata_batches    metadata records to batches of the log, and back
metadata_flushes    what of the log is on the disk
snapshots           `.checkpoint` files: named, written, read
quorum_state_file   what a replica remembers of elections
"""
