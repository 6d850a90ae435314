"""Who may do what, and how much: rules of access, quotas, credentials and tokens.

acls      rules of access
quotas    client quotas (KIP-546)
scram     SCRAM credentials of users (KIP-554)
tokens    delegation tokens (KIP-48)
"""
