"""`ottla backup` and `ottla restore`: a cluster, or some of its topics, in a directory, and back. For any Kafka.

    backup_command, restore_command   the command lines
    saving           one run of a back-up; planning where it begins with a partition; kept_batches what it keeps
    runs             the directory: runs, and which files hold a partition; block_files these files
    cluster_state    all that is not records: topics and settings, groups, rules, quotas, users
    restoring        one run of a restore; restore_state how far it is
    saved_records    what a restore sends; comparing whether a partition has it

docs/backup.md has the format.
"""
