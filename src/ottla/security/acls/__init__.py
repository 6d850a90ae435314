"""Rules of access (KIP-11, KIP-290), as Apache Kafka's `StandardAuthorizer` understands them.

`bindings`    a rule, and the records that keep it in the metadata
`filters`     which rules an administrator asks for
`hosts`       where a client is, and whether a rule speaks of that place
`rule_index`  rules by what they are about, so that a decision looks at few of them
`authorizer`  who may do what
"""
