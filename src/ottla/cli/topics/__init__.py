"""Tools about topics and their partitions.

`topics`            kafka-topics: what is asked for, in which order
`topic_options`     its options
`topic_lines`       a description as it prints it
`choosing`          topics by name or by a regular expression
`get_offsets`, `delete_records`, `leader_election`, `log_dirs`   the tools of these names
"""
