"""The commit log on disk: segments, indexes, producer state, leader epochs, recovery, and the directories they are in.

partition_log     one partition's log: append, roll, retain, truncate; `readable_log` is what readers see of it
reading, flush    finding records across segments; making them durable; `closing` does it for many logs at once
recovery          from whatever a stop has left to a log that is whole
segment           a file of batches, with its `index` and `transaction_index`
producer_state    what is known of producers; `producer_snapshot(s)` keep it, `producer_rebuild` finds it again
leader_epochs     which leader wrote what
cleaning          compaction: a package of its own
directory         a log directory with its checkpoints and lock; `log_dirs` are all of a node's
disk              the real disk behind the `Disk` port; `ottla.testing.memory_disk` is the other one
"""
