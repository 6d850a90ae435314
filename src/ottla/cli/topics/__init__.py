"""Tools about topics and their partitions.

`topics`            kafka-topics: what is asked for, in which order
`topic_options`     its options
`topic_lines`       a description as it prints it
"""
