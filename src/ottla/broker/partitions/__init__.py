"""The partitions that this node holds.

    held_partitions      all of them, the requests that wait for them, and what a failing disk does to them
    replicas             from committed metadata to open logs; directory_assignments tells the controller where they are
    logs_in_making       requests for partitions that are announced and not there yet
    partition            one partition: its log, its leader's state, the requests that wait for it
    partition_end        what follows an append, for all who append; quick_append the one that is done most, compiled
    cold_reads           what the loop would have to wait for, read by a worker
    purgatory            requests that wait for records, for replicas or for the disk, and until when
    topic_settings       the settings that a partition lives by
    partition_events     what others do when something happens to a partition
    flushing, background the disk work that nobody asked for; removing takes files away
    replication_quota    how fast replicas that catch up may be sent
    traffic              counts of what went in and out
    moves                replicas on their way to another log directory
    cleaning             compaction: which logs are due, and the process that cleans them

Import from the modules.
"""
