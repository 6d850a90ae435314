"""A Kerberos realm of a test's own: a KDC (Apache Kerby's, in Java), key tables, and the configuration for both.

    with KerberosRealm(directory) as realm:
        realm.login("alice")        # for JAAS
        realm.environment           # for processes that use the system's Kerberos
        realm.java_option           # for those that use Java's

The realm is EXAMPLE.COM, and everyone in it is on `localhost`.
"""

import os
import subprocess
from functools import cache
from pathlib import Path
from types import TracebackType

from tests.interop.apache_kafka import QUICK_START, ApacheKafkaError, free_ports

VERSION = "2.1.1"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
USERS = ("alice", "bob", "kafka/localhost")
_PROGRAM = Path(__file__).with_name("Kdc.java")
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>kerberos</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kerby</groupId><artifactId>kerb-simplekdc</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
_CONFIGURATION = """\
[libdefaults]
  default_realm = EXAMPLE.COM
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  EXAMPLE.COM = {{
    kdc = localhost:{port}
  }}
[domain_realm]
  localhost = EXAMPLE.COM
"""


@cache
def libraries() -> Path:
    """The directory of Kerby's jars, downloaded with Maven the first time."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"apache-kerby-{VERSION}"
    if not (home / "ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "pom.xml").write_text(_POM.format(version=VERSION))
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={home / 'libs'}"]
        subprocess.run(copy, cwd=home, check=True, timeout=900)
        (home / "ready").touch()
    return home / "libs"


class KerberosRealm:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        [self._port] = free_ports(1)
        self.configuration = directory / "krb5.conf"
        self.configuration.write_text(_CONFIGURATION.format(port=self._port))
        self.environment = {"KRB5_CONFIG": str(self.configuration), "KRB5RCACHENAME": f"dfl:{directory}"}
        self.java_option = f"-Djava.security.krb5.conf={self.configuration}"
        self._kdc: subprocess.Popen[str] | None = None

    def __enter__(self) -> "KerberosRealm":
        command = ["java", *QUICK_START, "-cp", f"{libraries()}/*", str(_PROGRAM), str(self.directory), str(self._port)]
        users = [f"{self.key_table(user).name}={user}@EXAMPLE.COM" for user in USERS]
        self._kdc = subprocess.Popen([*command, *users], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._kdc.stdout is not None
        if self._kdc.stdout.readline().strip() != "ready":
            self.stop()
            raise ApacheKafkaError("the KDC did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._kdc is not None:
            self._kdc.kill()
            self._kdc.communicate()
            self._kdc = None

    def key_table(self, user: str) -> Path:
        return self.directory / f"{user.replace('/', '-')}.keytab"

    def login(self, user: str) -> str:
        options = f'useKeyTab=true storeKey=true keyTab="{self.key_table(user)}" principal="{user}@EXAMPLE.COM"'
        return f"{MODULE} required {options};"

    def client(self, bootstrap: str, user: str = "alice") -> dict[str, object]:
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": self.login(user),
        }
