"""Connect's data on Arrow.

schema      a schema: type, optional, default, name, version, doc, parameters; the logical types
columns     one part of many records, in columns: with a schema, or without one
rows        values of single rows in Python: checked, and to columns and back; for what cannot be done in columns
arrow       the door to everybody else's Arrow: logical types as Arrow's own, the rest of a schema in metadata
records     records of one topic and one schema: key, value, headers, timestamps, where they came from
"""
