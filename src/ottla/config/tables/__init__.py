"""Every setting of Apache Kafka 4.3, as rows: a module is imported when somebody asks for its scope.

Names, types, defaults, bounds, importance and dynamic modes are facts, and a test holds them to what Apache Kafka
says; the sentences are ours. `SECTIONS` has
their titles in the reference page. The formatter leaves these modules alone, so that a row stays a row.
"""
