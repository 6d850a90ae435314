"""Every setting of Apache Kafka 4.3, as rows: one module an area, imported when somebody asks for its scope.

Names, types, defaults, bounds, importance and dynamic modes are facts, and a test holds them to what Apache Kafka
says; the sentences are ours. A module's docstring begins with the title of its section of the reference page. The
formatter leaves these modules alone, so that a row stays a row.
"""
