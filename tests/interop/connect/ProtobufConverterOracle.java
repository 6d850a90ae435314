// What Confluent's ProtobufConverter does: questions and answers are JSON objects, one a line. Each has a registry of its own.
//
// A value with its schema travels as JsonConverter writes it (base64 of the bytes), or as null. Questions:
//   {"do": "write", "options": {...}, "value": ...}                 the schema, and the bytes behind its id
//   {"do": "read", "options": {...}, "schema": ..., "bytes": ...}   what such bytes of such a schema become
// An answer has "out" (and "schema"), or "error" (the name of the exception) and "message".

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.confluent.connect.protobuf.ProtobufConverter;
import io.confluent.kafka.schemaregistry.client.MockSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchemaProvider;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;

public class ProtobufConverterOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonConverter CARRIER = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        CARRIER.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        int number = 0;
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            String scope = "q" + number++;
            try {
                answered(JSON.readTree(line), scope, answer);
            } catch (Throwable error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName());
                Throwable cause = error.getCause() == null ? error : error.getCause();
                answer.put("message", error.getMessage() + " / " + cause.getMessage());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        answers.flush();
    }

    static void answered(JsonNode question, String scope, ObjectNode answer) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : question.get("options").properties())
            options.put(one.getKey(), one.getValue().asText());
        options.put("schema.registry.url", "mock://" + scope);
        SchemaRegistryClient registry = new MockSchemaRegistryClient(List.of(new ProtobufSchemaProvider()));
        ProtobufConverter converter = new ProtobufConverter(registry);
        converter.configure(options, false);
        if (question.get("do").asText().equals("write")) {
            JsonNode content = question.get("value");
            SchemaAndValue value = content.isNull() ? SchemaAndValue.NULL
                : CARRIER.toConnectData("topic", Base64.getDecoder().decode(content.asText()));
            byte[] written = converter.fromConnectData("topic", value.schema(), value.value());
            if (written == null) {
                answer.putNull("out");
                return;
            }
            answer.put("schema", registry.getSchemaById(ByteBuffer.wrap(written, 1, 4).getInt()).canonicalString());
            answer.put("out", Base64.getEncoder().encodeToString(Arrays.copyOfRange(written, 5, written.length)));
            return;
        }
        int id = registry.register("topic-value", new ProtobufSchema(question.get("schema").asText()));
        byte[] payload = Base64.getDecoder().decode(question.get("bytes").asText());
        byte[] whole = ByteBuffer.allocate(5 + payload.length).put((byte) 0).putInt(id).put(payload).array();
        SchemaAndValue read = converter.toConnectData("topic", whole);
        byte[] carried = CARRIER.fromConnectData("topic", read.schema(), read.value());
        answer.put("out", carried == null ? null : Base64.getEncoder().encodeToString(carried));
    }
}
