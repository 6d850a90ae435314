"""Compaction: of every key the last record is kept, and the rest makes room (`cleanup.policy=compact`).

Theory of operation, as Apache Kafka's cleaner. A compacted log has a clean part, cleaned before, and a dirty one after
it. A cleaning goes through the dirty part and notes the latest offset of each key; then through the whole log from its
beginning, and copies the records that are still the latest of their key into new segments. Offsets never change.

A tombstone (a record without value) is kept until readers have had `delete.retention.ms` to see it, counted from the
first cleaning that met it: the batch then carries its delete horizon (KIP-534). So are markers of transactions that
have no records left. Records of aborted transactions go. The last batch of a producer stays, with no records if need
be, because its sequence is needed; and the last batch of a cleaning, so that the log does not seem to end earlier.

planning      which part of a log can be cleaned, whether it is time to, and the job for it
job           the orders of a cleaning, and its reports
source        reading batches, and refusing damage
offset_map    the first pass: the latest offset of each key
grouping      which segments become one
transactions  which transactions are aborted, and which markers are still needed
cleaned_batches  what is left of one batch
cleaning      the second pass: segments are written, with the suffix .cleaned
replacement   the swap of cleaned segments for old ones, safe against a crash at any moment
runner        who does the work: a process of its own, or the test itself
throttle      not faster than `log.cleaner.io.max.bytes.per.second`

Everything but `planning` and `replacement` may run in another process: it reads segments that no longer change,
and writes files that nobody else looks at.
"""
