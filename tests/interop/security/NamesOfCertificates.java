import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.io.PrintStream;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Reads lines "name HEX" and "map RULES<tab>NAME", and writes what Java and Apache Kafka make of them, one line each. */
public class NamesOfCertificates {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String rest = line.substring(5);
            if (line.startsWith("name ")) {
                out.println(new X500Principal(HexFormat.of().parseHex(rest)).getName());
            } else {
                String[] given = rest.split("\t", -1);
                try {
                    out.println(SslPrincipalMapper.fromRules(given[0]).getName(given[1]));
                } catch (IllegalArgumentException | IndexOutOfBoundsException wrong) {
                    out.println("WRONG RULES");
                } catch (java.io.IOException none) {
                    out.println("NO RULE");
                }
            }
        }
    }
}
