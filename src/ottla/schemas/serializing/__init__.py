"""Serializers: values to framed records and back, with schemas from a registry that is given.

serializers         what all formats share: procedures that ask a registry, settings, the blocking and the asyncio face
avro, protobuf, json    the formats
framing             the id before the bytes or in a header; Protobuf's message indexes
subjects            under which subject a schema is registered
objects             dataclasses, pydantic's models and the like from plain values and back
rules               conditions and transformations that a registry keeps with a schema
"""
