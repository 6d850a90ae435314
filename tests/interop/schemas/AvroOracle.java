// Reads pairs of schemas, a JSON object a line, and writes what Apache Avro says of them, a JSON object a line.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaNormalization;

public class AvroOracle {
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode question = MAPPER.readTree(line);
            ObjectNode answer = MAPPER.createObjectNode();
            Schema reader = described(question, "reader", answer.putObject("reader"));
            Schema writer = described(question, "writer", answer.putObject("writer"));
            if (reader != null && writer != null) {
                answer.put("equal", reader.equals(writer));
                ArrayNode found = answer.putArray("incompatibilities");
                try {
                    for (SchemaCompatibility.Incompatibility one : SchemaCompatibility
                            .checkReaderWriterCompatibility(reader, writer).getResult().getIncompatibilities()) {
                        found.addArray().add(one.getType().toString()).add(one.getLocation()).add(one.getMessage());
                    }
                } catch (RuntimeException error) {
                    found.removeAll();
                    found.addArray().add("AMBIGUOUS_FIELD").add("/").add(error.getMessage());
                }
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
        out.flush();
    }

    static Schema described(JsonNode question, String which, ObjectNode answer) throws Exception {
        boolean asNew = question.get("as_new").asBoolean();
        Schema.Parser parser = new Schema.Parser(asNew ? NameValidator.STRICT_VALIDATOR : NameValidator.UTF_VALIDATOR);
        parser.setValidateDefaults(asNew);
        try {
            List<Schema> references = new ArrayList<>();
            for (JsonNode reference : question.get("references")) {
                references.add(parser.parse(reference.asText()));
            }
            Schema schema = parser.parse(question.get(which).asText());
            answer.put("text", schema.toString(references, false));
            answer.put("resolved", schema.toString());
            String form = SchemaNormalization.toParsingForm(schema);
            answer.put("form", form);
            for (String algorithm : List.of("CRC-64-AVRO", "MD5", "SHA-256")) {
                answer.put(algorithm, HexFormat.of().formatHex(SchemaNormalization.parsingFingerprint(algorithm, schema)));
            }
            return schema;
        } catch (RuntimeException | StackOverflowError error) {
            answer.put("error", String.valueOf(error.getMessage()));
            return null;
        }
    }
}
