"""What a node holds its clients to, from its settings and the metadata.

quotas             the quotas of the metadata, in force
address_quotas     those on connections from an address or a host
connection_limits  how many connections there may be
"""
