"""TLS for nodes and clients: from Kafka's `ssl.*` settings to connections that nobody else can read.

    contexts              settings -> the context that connections are made with, a server's or a client's
    stores                settings -> our key and certificates, and the certificates that we trust
    pkcs12                the same from PKCS12 files; needs `cryptography`
    issuing               certificates for trying things out; needs `cryptography`
    cipher_suites         the names of cipher suites: Java's, and OpenSSL's for the same
    key_files             keys in files: read with care, and made for as long as OpenSSL reads them
    transport             a connection's bytes over TLS, above any other transport
    handshake             what comes before: bounded, and never waiting
    dialling              connecting to somebody by TLS
    der                   as much of certificates as is needed to name their subjects
    distinguished_names   the name of a certificate's subject, as Java writes it
    principal_mapping     from that name to a principal's (`ssl.principal.mapping.rules`)

OpenSSL is loaded with the first context, and not before. Import from the modules.
"""
