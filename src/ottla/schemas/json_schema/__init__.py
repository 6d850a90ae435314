"""JSON Schema: drafts 4, 6, 7, 2019-09 and 2020-12.

schema              a parsed schema, as the registry knows it
shapes              what a schema is to a comparison; references, which are never fetched
compatibility       the rules, and the comparison by them
validation          values held against a schema
arrow               documents to columns
"""
