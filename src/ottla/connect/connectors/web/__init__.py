"""HTTP both ways.

addresses   connects, but never to link-local and metadata addresses
client      requests over connections that are kept, bounded in time and bytes
options     what several of these connectors are told in the same words: TLS, credentials, headers
sink        records to requests
source      replies to records
"""
