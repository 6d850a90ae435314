"""Talking to brokers: one connection each, and the table of them.

broker_connection    requests out and responses in, over one transport
asked                what it is asked
api_versions         what a broker serves, and so which version a request takes
authentication       telling a broker who we are
connections          all connections of a client; pauses after failures; idle ones
backoff              pauses that grow
"""
