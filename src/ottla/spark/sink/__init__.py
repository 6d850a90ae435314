"""Writing: `df.write.format("ottla")` and `df.writeStream.format("ottla")`.

    sink_options     what was asked for, checked
    rows             columns of a DataFrame, and where each row goes
    task_writer      a task's rows: few to the driver, many into a transaction that stays open
    stream_writer, batch_writer    what Spark calls; decided_writes is what they share
    digest           which rows a batch has; _fast_digest.pyx is its work per row, _slow_digest the same in Python
    row_sender       rows through a producer, gathered and counted
    committer        the driver's side: decide, commit, recover
    names            what the sink's own topics and transactions are called
    decision         what a decision says; decision_log is the topic that holds them
    outcomes         whether a transaction was committed or aborted
    copying          rows written again, from the log
    single_transaction   one transaction of the driver for a whole write; staging is where its rows come from
    cluster_access   what the sink asks of brokers beyond an admin's calls

The protocol and its failures: docs/decisions/0012-exactly-once-spark-sink.md
"""
