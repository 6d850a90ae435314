"""The short names that Apache Kafka makes of Kerberos principals.

`python -m tests.interop.security.kerberos_names` records them. The rules are those of
`sasl.kerberos.principal.to.local.rules`; the default realm is EAST.
"""

import json
from itertools import product
from pathlib import Path

from tests.interop.apache_kafka import java

RECORDED = Path(__file__).parents[2] / "unit" / "security" / "kerberos" / "kafka_short_names.json"
PROGRAM = Path(__file__).with_name("KerberosNames.java")

RULES = [
    "DEFAULT",
    "RULE:[1:$1]",
    "RULE:[2:$1]",
    "RULE:[1:$1],RULE:[2:$1$2]",
    "RULE:[1:$1@$0](.*@WEST)s/@.*//,DEFAULT",
    "RULE:[1:$1@$0](.*@WEST)s/@WEST/-west/L,DEFAULT",
    "RULE:[2:$1.$2](kafka\\..*)s/\\..*//U",
    "RULE:[1:$1](a.*)s/a/-/g",
    "RULE:[1:$1](a.*)s/a/-/",
    "RULE:[1:$1]s/a/b/",
    "RULE:[1:$1]s/(a)(l)/$2$1/",
    "RULE:[1:$1]s/(a)/$1$10/",
    "RULE:[1:$1]s/(x)?a/[$1]/",
    "RULE:[1:$1]s/x*/-/g",
    "RULE:[1:$1]s/x*/-/",
    "RULE:[1:$1]s/^(.)(.*)$/$2$0/",
    "RULE:[1:$1]s/a/\\$1/",
    "RULE:[1:$1]s/a/$2/",
    "RULE:[1:$1]s/a/$/",
    "RULE:[1:$1]s/a/\\/",
    "RULE:[1:$1]s/.*//",
    "RULE:[1:$1]/L",
    "RULE:[1:$1]L",
    "RULE:[1:$1]U",
    "RULE:[1:$1]s/a/b/gL",
    "RULE:[1:$1]s/a/b/g/U",
    "RULE:[1:$1]s/a/b/LU",
    "RULE:[1:$1@$0]",
    "RULE:[1:$1@$0],DEFAULT",
    "RULE:[1:$2]",
    "RULE:[1:$]",
    "RULE:[1:$1$]",
    "RULE:[1:fixed]",
    "RULE:[1:]",
    "RULE:[0:$0]",
    "RULE:[3:$1]",
    "RULE:[:$1]",
    "RULE:[x:$1]",
    "RULE:[1:$1](alice)",
    "RULE:[1:$1](lic)",
    "RULE:[1:$1](ALICE)",
    "RULE:[1:$1](ali",
    "RULE:[1:$1]()",
    "RULE:[1:$1]s/a/b",
    "RULE:[1:$1]s/(a/b/",
    "RULE:[1:$1]x",
    "RULE:[1:$1",
    "RULE",
    "default",
    "DEFAULTX",
    "RULE:[1:$1](x.*)s/x/y/,RULE:[2:$2],DEFAULT",
]
PRINCIPALS = [
    "alice@EAST",
    "Alice@WEST",
    "aaxx@EAST",
    "kafka/node1.example.com@EAST",
    "kafka/node1@WEST",
    "alice",
    "a/b/c@EAST",
    "alice@EAST@WEST",
    "Łukasz@EAST",
]


def ask() -> list[dict[str, str]]:
    cases = list(product(RULES, PRINCIPALS))
    told = java(str(PROGRAM), input="".join(f"{rules}\t{name}\n" for rules, name in cases)).stdout.splitlines()
    return [
        {"rules": rules, "principal": name, "kafka": answer} for (rules, name), answer in zip(cases, told, strict=True)
    ]


if __name__ == "__main__":
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in ask())
    RECORDED.write_text(f"[\n{rows}\n]\n")
