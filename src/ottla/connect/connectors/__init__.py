"""The connectors: one room or file each. `ottla.connect.plugins` has their class names.

allowed_paths   which files connectors may use
confluent_s3    Confluent's S3 sink
file_stream     Kafka's FileStreamSource and FileStreamSink: lines of a growing file
files           directories of JSON lines, CSV and Parquet, both ways
generator       records from nowhere, for trying things out and measuring
lakes           into Delta Lake and Iceberg
postgres        PostgreSQL's changes, as Debezium gives them
s3              who we are to S3, and where it is
s3_directory    a directory on S3 that is written exactly once
tables          into tables of databases, and from tables by polling, as JDBC's connectors
"""
