// Reads pairs of Avro schemas, a JSON object a line, and writes what Confluent's client says of them, a JSON object a line.

import io.confluent.kafka.schemaregistry.CompatibilityChecker;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.pinot.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.pinot.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.pinot.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.pinot.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

public class ConfluentAvro {
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode question = MAPPER.readTree(line);
            ObjectNode answer = MAPPER.createObjectNode();
            try {
                AvroSchema fresh = new AvroSchema(question.get("new").asText());
                AvroSchema old = new AvroSchema(question.get("old").asText()).copy(7);
                answer.put("canonical", fresh.canonicalString());
                try {
                    answer.put("normalized", fresh.normalize().canonicalString());
                } catch (RuntimeException error) {
                    answer.put("not normalized", String.valueOf(error.getMessage()));
                }
                answer.put("equivalent", fresh.equivalent(old.copy((Integer) null)));
                for (String level : List.of("BACKWARD", "FORWARD", "FULL")) {
                    CompatibilityChecker checker = level.equals("BACKWARD") ? CompatibilityChecker.BACKWARD_CHECKER
                            : level.equals("FORWARD") ? CompatibilityChecker.FORWARD_CHECKER : CompatibilityChecker.FULL_CHECKER;
                    ArrayNode messages = answer.putArray(level);
                    checker.isCompatible(fresh, new ArrayList<>(Collections.singletonList(old))).forEach(messages::add);
                }
            } catch (RuntimeException error) {
                answer.removeAll();
                answer.put("error", String.valueOf(error.getMessage()));
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
        out.flush();
    }
}
