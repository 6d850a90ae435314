"""Who may do what. Apache Kafka's authorizer reads these settings by itself, and they are in no table of Kafka's."""

from ottla.config.setting import ANY, LOW, Flag, Text

SETTINGS = (
    Text("super.users", "", ANY, LOW,
         "Principals that may do everything, with `;` between them, as `User:admin;User:broker`.", acted_on=True),
    Flag("allow.everyone.if.no.acl.found", False, ANY, LOW,
         "Whether everyone may do everything with a resource that no access rule is about.", acted_on=True),
)
