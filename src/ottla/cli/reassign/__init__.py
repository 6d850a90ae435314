"""kafka-reassign-partitions: moving replicas to other brokers and to other log directories.

`reassign_partitions`  the tool and its five actions
`reassign_options`     its options, and which go with which action
`assignment_files`     assignments as JSON, read and written
`cluster_replicas`     which replicas a cluster has, and in which directories
`proposing`            a new assignment over a list of brokers
`directory_moves`      moves between directories of a broker: how far they are, and starting them
`waiting`              how far moves are, until they are done
`throttles`            what may be moved in a second: set before a move, cleared after it
"""
