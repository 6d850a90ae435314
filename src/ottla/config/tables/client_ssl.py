"""TLS. Certificates, keys, and what is trusted."""

from ottla.config.bounds import Items, OneOf
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, Class, List, Secret, Text

SETTINGS = (
    Text("security.protocol", "PLAINTEXT",
         OneOf(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"), any_case=True), MEDIUM,
         "How brokers are spoken to: with or without TLS (SSL), with or without SASL.", acted_on=True),
    Text("security.providers", None, ANY, LOW,
         "Classes that add security algorithms to a Java runtime; without meaning here."),
    Text("ssl.protocol", "TLSv1.3", ANY, MEDIUM,
         "TLS version to use if the other side has it too.", acted_on=True),
    List("ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3"), Items(), MEDIUM,
         "TLS versions that may be used.", acted_on=True),
    List("ssl.cipher.suites", (), Items(), LOW,
         "Cipher suites that may be used; empty is every one the TLS library offers.", acted_on=True),
    Text("ssl.endpoint.identification.algorithm", "https", ANY, LOW,
         "How the server's host name is compared with its certificate; empty does not compare, and is not safe.",
         acted_on=True),

    # Our own key and certificate
    Text("ssl.keystore.type", "JKS", ANY, MEDIUM,
         "Form of the key store: PEM, PKCS12 or JKS.", acted_on=True),
    Text("ssl.keystore.location", None, ANY, HIGH,
         "File with our private key and certificates.", acted_on=True),
    Secret("ssl.keystore.password", HIGH,
           "Password of the key store file; PEM has none.", acted_on=True),
    Secret("ssl.keystore.key", HIGH,
           "Our private key itself, in PEM, instead of a file.", acted_on=True),
    Secret("ssl.keystore.certificate.chain", HIGH,
           "Our certificate and those that vouch for it, in PEM, instead of a file.", acted_on=True),
    Secret("ssl.key.password", HIGH,
           "Password of the private key, if it is encrypted.", acted_on=True),

    # Whom we trust
    Text("ssl.truststore.type", "JKS", ANY, MEDIUM,
         "Form of the trust store: PEM, PKCS12 or JKS.", acted_on=True),
    Text("ssl.truststore.location", None, ANY, HIGH,
         "File with the certificates that are trusted.", acted_on=True),
    Secret("ssl.truststore.password", HIGH,
           "Password of the trust store file; without it the file is read unchecked.", acted_on=True),
    Secret("ssl.truststore.certificates", HIGH,
           "Trusted certificates themselves, in PEM, instead of a file.", acted_on=True),

    # Java's own knobs
    Text("ssl.provider", None, ANY, MEDIUM,
         "Name of the Java security provider for TLS."),
    Text("ssl.keymanager.algorithm", "SunX509", ANY, LOW,
         "Algorithm of Java's key manager factory."),
    Text("ssl.trustmanager.algorithm", "PKIX", ANY, LOW,
         "Algorithm of Java's trust manager factory."),
    Text("ssl.secure.random.implementation", None, ANY, LOW,
         "Algorithm of Java's random numbers for TLS."),
    Class("ssl.engine.factory.class", None, ANY, LOW,
          "Class that makes TLS engines (SslEngineFactory)."),
)
