"""The commit log on disk: segments, indexes, producer state, leader epochs, recovery, and the directories they are in.

partition_log     one partition's log: append, roll, retain, truncate; `readable_log` is what readers see of it
outcomes, errors  what it answers; what can be wrong on the disk; `log_config` has the settings that it acts on
reading, flush    finding records across segments; making them durable; `closing` does it for many logs at once
time_lookup       finding a record by its time, on another thread
retention         which of the oldest segments go; `retired_files` wait for their removal
recovery          from whatever a stop has left to a log that is whole
segment           a file of batches, with its `index` and `transaction_index`; `segment_files` keeps their files, `scan`
                  walks through them, `index_rebuild` makes indexes anew
producer_state    what is known of producers; `producer_snapshot` and `producer_snapshots` keep it,
                  `producer_rebuild` finds it again, `producer_recall` the batches that a snapshot does not have
leader_epochs     which leader wrote what
cleaning          compaction: a package of its own
directory         a log directory with its checkpoints and lock; `log_dirs` are all of a node's, `future_logs` those
                  that come from another
names, files      how things are called there, and how they are made durable; `marked_dirs` come or go, `checkpoint` has
                  the small text files, `offset_checkpoint` one that several threads change
disk              the real disk behind the `Disk` port; `ottla.testing.memory_disk` is the other one;
                  `file_system_sync` syncs many files at once, `block_reservation` makes room for one that grows
"""
