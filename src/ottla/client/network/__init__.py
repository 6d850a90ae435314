"""The connections of a client to brokers (`wire.exchange.client_connection`).

connections        which there are; pauses after failures; idle ones
promised_request   a request whose response is promised, and the error that its failure becomes
"""
