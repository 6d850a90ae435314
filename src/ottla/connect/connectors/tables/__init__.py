"""Tables of databases: into them (Confluent's and Debezium's JDBC sinks), and from them by polling (Confluent's).

databases   PostgreSQL and SQLite: connections by JDBC addresses, their SQL, their types
rows        a batch of records as columns of a table
sink        into tables: rows and positions in one transaction of the target
source      from tables by polling: all rows, or those that are new by a number, a time, or both
"""
