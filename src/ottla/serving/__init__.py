"""What the listeners of brokers and of controllers have in common: who may ask, what is set, what is advertised.

    api_versions         what a listener advertises, and the answer to a version that nobody knows
    endpoint_types       whom a client of DescribeCluster asks for
    sasl_state           SASL of clients that have nothing to prove
    node_settings        this node's settings as they are now (KIP-226)
    described_configs    settings as clients see them; config_entries one of them, and where it comes from
    loggers              the loggers and their levels
    access               what stands before the handlers where there is an authorizer: a room of its own
    described_acls       rules of access as clients see them; described_users users and their SCRAM credentials

Import from the modules.
"""
