import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/** Reads lines "RULES<tab>PRINCIPAL", rules with commas between, and writes the short name that Apache Kafka makes. */
public class KerberosNames {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] given = line.split("\t", -1);
            try {
                KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules("EAST", List.of(given[0].split(",")));
                try {
                    out.println("= " + namer.shortName(KerberosName.parse(given[1])));
                } catch (IOException none) {
                    out.println(none.getClass().getSimpleName().equals("BadFormatString") ? "WRONG RULE" : "NO NAME");
                } catch (IllegalArgumentException | IndexOutOfBoundsException wrong) {
                    boolean isName = wrong.getMessage() != null && wrong.getMessage().startsWith("Malformed Kerberos");
                    out.println(isName ? "NO NAME" : "WRONG RULE");
                }
            } catch (IllegalArgumentException wrong) {
                out.println("WRONG RULE");
            }
        }
    }
}
