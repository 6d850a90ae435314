"""`kafka-metadata-shell`: the metadata of a cluster as directories and files, and commands to look around in them.

`shell`         the command: its options, one command or a prompt
`commands`      what can be typed
`paths`         names with patterns, to nodes of the tree
`tree`          what directories and files are
`image_tree`    the metadata as such a tree, laid out as Apache Kafka's shell does
`java_text`     brokers, partitions and the rest in a line each, as Java prints them
`reading`       a snapshot, a segment or a whole directory to the metadata in it
"""
