"""Writing: `df.write.format("ottla")` and `df.writeStream.format("ottla")`.

    rows             columns of a DataFrame, and where each row goes
    task_writer      a task's rows: few to the driver, many into a transaction that stays open
    stream_writer, batch_writer    what Spark calls; decided_writes is what they share
    committer        the driver's side: decide, commit, recover
    decision         what a decision says; decision_log is the topic that holds them
    outcomes         whether a transaction was committed or aborted
    copying          rows written again, from the log
    staging          rows on their way to one transaction of the driver
    cluster_access   what the sink asks of brokers beyond an admin's calls

The protocol and its failures: docs/decisions/0012-exactly-once-spark-sink.md
"""
