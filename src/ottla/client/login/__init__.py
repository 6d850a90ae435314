"""What a client shows to brokers to prove who it is (SASL), from its settings.

choice          the login that `sasl.mechanism` and `sasl.jaas.config` ask for
passwords       a name and a password, or a delegation token: PLAIN and SCRAM
kerberos        tickets from a key table or a cache (GSSAPI)
oauth           the login by tokens (OAUTHBEARER) that settings ask for, put together of the files below
token_login     one token for all connections, renewed in time
token_sources   a provider's endpoint, a file, or claims that nobody signs
assertions      what stands in for a secret at an endpoint
tokens          what a client can tell of a token
"""
