"""The source: topics to rows.

source_options   what was asked for, checked
offsets_json     offsets as Spark's connector writes them
lookups          what the driver asks of the cluster
ranges           which task reads which offsets
task             one range to Arrow's record batches, on an executor
rows             the columns
batch_reader     spark.read
"""
