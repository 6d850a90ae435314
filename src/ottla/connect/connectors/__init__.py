"""The connectors: one room or file each. `ottla.connect.plugins` has their class names.

allowed_paths   which files connectors may use
confluent_s3    Confluent's S3 sink
dlt_resource    resources and sources of dlt; its state is the offset
file_stream     Kafka's FileStreamSource and FileStreamSink: lines of a growing file
files           directories of JSON lines, CSV and Parquet, both ways
generator       records from nowhere, for trying things out and measuring
known_options   an option that we lack is refused by name
lakes           into Delta Lake and Iceberg
mysql           changes of MariaDB and MySQL, as Debezium gives them
postgres        PostgreSQL's changes, as Debezium gives them
renamed_topics  topics that a transform has renamed, for sinks that keep something by topic
run_id          the id of a run, as Debezium's connectors have it
s3              who we are to S3, and where it is
s3_directory    a directory on S3 that is written exactly once
search          into OpenSearch and Elasticsearch
spark_format    any format of Spark's: what is configured; the engine runs it
tables          into tables of databases, and from tables by polling, as JDBC's connectors
value_texts     the text of each value of a column, for targets that take text
web             HTTP both ways, never to a link-local address
"""
