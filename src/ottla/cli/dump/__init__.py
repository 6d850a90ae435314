"""Prints what is in the files of a data directory, ours or Apache Kafka's, in the words of Kafka's own tool.

Theory of operation: each kind of file has one function that takes its path and yields lines; nothing is read before
the line that needs it, so a segment of any size is printed in the memory of its largest batch. Nothing is ever written:
files are opened through `ReadOnlyDisk`. What is wrong with a file without making it unreadable (an index entry that
points elsewhere) goes into `Findings`, and is reported once all files are printed. What makes it unreadable is an
`OttlaError` that names file and position; the other files are still printed.

    arguments   the command line                               indexes     .index and .timeindex, held against their log
    options     what to print, the same for all files          state       .txnindex, .snapshot, checkpoints, properties
    files       which function prints which file               findings    what does not fit together
    dumped_batches   .log, and .checkpoint of metadata         decoders, internal_topics   keys and values in words
    control     control records in words                       kafka_json  messages in Kafka's JSON
    disk        one that can only be read
"""
