"""What a node holds its clients to, from its settings and the metadata.

quotas             the quotas of the metadata, in force; those on connections from an address or a host among them
connection_limits  how many connections there may be
"""
