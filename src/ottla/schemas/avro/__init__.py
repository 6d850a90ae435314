"""Avro 1.12.

schema              a parsed schema, as the registry knows it
types, parsing      what schemas are made of; JSON to types
text                types to text: Java's form, normalized, Parsing Canonical Form; fingerprints
compatibility       the rules, and the comparison by them
plan                how bytes of one schema become values of another, worked out before any bytes come
codec               encoder and decoder of values: compiled, or their twin in Python
json_form           bytes to the JSON that console tools print, and back
columns, arrow      what Arrow's columns are for a schema; rows to columns
"""
