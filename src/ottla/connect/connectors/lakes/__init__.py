"""Tables in files: Delta Lake and Iceberg, on a local directory or on S3.

changes   records of a put as rows of a table: all of them, or what is left of each key
columns   types that lakes have, and whether a column can take a field
sink      what both sinks do: options, records to tables, positions that must still be ours
delta     Delta Lake: rows and application transactions in one commit
iceberg   Iceberg: rows and a property of the snapshot in one commit
"""
