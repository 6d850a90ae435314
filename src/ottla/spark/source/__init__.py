"""The source: topics to rows.

source_options   what was asked for, checked
offsets_json     offsets as Spark's connector writes them
lookups          what the driver asks of the cluster
ranges           which task reads which offsets
batch_reader     spark.read
filters          what a batch read need not read
stream_reader    spark.readStream
admission        how much goes into one micro-batch
probing_fetches  waiting for records, and how large they are
task             one range to Arrow's record batches, on an executor
ahead            the next rows are made while Spark takes those before
kept_consumers   what a worker keeps from task to task
rows             the columns
values/          values that are decoded where they are read
"""
