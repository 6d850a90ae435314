// Reads pairs of .proto texts and says what Confluent's rules refuse between them, both ways. A JSON object a line.

import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

public class ConfluentProtobuf {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            // No library of JSON here has a name that can be relied on: the texts come in base64, in this order.
            String[] parts = line.split("\"");
            try {
                ProtobufSchema fresh = new ProtobufSchema(decoded(parts[3]));
                ProtobufSchema old = new ProtobufSchema(decoded(parts[7]));
                out.println("{\"backward\":" + fresh.isBackwardCompatible(old) + ",\"forward\":" + old.isBackwardCompatible(fresh) + "}");
            } catch (RuntimeException error) {
                out.println("{\"error\":true}");
            }
        }
        out.flush();
    }

    static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }
}
