// Reads two .proto texts and says what Square's parser, which Confluent's registry uses, makes of each, without comments.
// A JSON object a line.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.squareup.wire.schema.Location;
import com.squareup.wire.schema.internal.parser.ProtoParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

public class WireOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode question = mapper.readTree(line);
            ObjectNode answer = mapper.createObjectNode();
            question.fields().forEachRemaining(field -> {
                try {
                    answer.put(field.getKey(),
                            ProtoParser.Companion.parse(Location.get(""), field.getValue().asText()).toSchema());
                } catch (RuntimeException error) {
                    answer.put(field.getKey(), "refused: " + error.getMessage());
                }
            });
            out.println(mapper.writeValueAsString(answer));
        }
        out.flush();
    }
}
