"""Protobuf: proto2, proto3 and editions.

schema              a parsed .proto file, as the registry knows it
elements, parsing   what files are made of; text to elements
text                elements to text: Confluent's form, normalized
names               what names mean, in a file and in what it imports
well_known          files that need no reference: google/protobuf, google/type, Confluent's
descriptors         elements to protobuf's descriptors and back
linking             protobuf's descriptor pool: checks, classes of messages, custom options
compatibility       the rules, and the comparison by them
arrow               messages to Arrow's columns; without_editions for its library, which knows none
"""
