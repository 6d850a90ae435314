"""The commit log on disk: segments, indexes, producer state, leader epochs, recovery, and the directories they are in.

partition_log     one partition's log: append, roll, retain, truncate; `readable_log` is what readers see of it
outcomes, errors  what it answers; what can be wrong on the disk; `log_config` has the settings that it acts on
reading, flush    finding records across segments, by offset and by time; making them durable, one log's or many's
retention         which of the oldest segments go, and the files that wait for their removal
recovery          from whatever a stop has left to a log that is whole
segment           a file of batches, with its `index` and `transaction_index`; `segment_files` keeps their files, `scan`
                  walks through them, `index_rebuild` makes indexes anew
producer_state    what is known of producers, and the form of a file of it; `producer_snapshots` keeps those files,
                  `producer_recovery` finds it again in the log
leader_epochs     which leader wrote what
cleaning          compaction: a package of its own
directory         a log directory with its checkpoints and lock; `log_dirs` are all of a node's, `future_logs` those
                  that come from another
file_names, files how things are called there; how they are made durable, how directories come and go
checkpoint        the small text files, one among them that several threads change
disk              the real disk behind the `Disk` port; `ottla.testing.memory_disk` is the other one
"""
