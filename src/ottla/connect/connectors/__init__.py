"""The connectors: one room or file each. `ottla.connect.plugins` has their class names.

allowed_paths   which files connectors may use
file_stream     Kafka's FileStreamSource and FileStreamSink: lines of a growing file
files           directories of JSON lines, CSV and Parquet, both ways
generator       records from nowhere, for trying things out and measuring
mysql           changes of MariaDB and MySQL, as Debezium gives them
postgres        PostgreSQL's changes, as Debezium gives them
tables          into tables of databases, and from tables by polling, as JDBC's connectors
"""
