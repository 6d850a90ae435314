// What Kafka Connect's own converters and transforms do: questions and answers are JSON objects, one a line.
//
// A value with its schema travels as JsonConverter writes it (base64 of the bytes), or as null. Questions:
//   {"do": "write", "class": ..., "options": {...}, "value": ...}   what a converter writes for a value
//   {"do": "read", "class": ..., "options": {...}, "bytes": ...}    what a converter reads from bytes
//   {"do": "transform", "class": ..., "options": {...}, "records": [...]}   what a transform makes of records
//   {..., "source": true}                                           the same of a source's records
//   {"do": "predicate", ...}                                        whether a predicate holds for each
// An answer has "out", or "error" (the name of the exception) and "message".

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

public class ConnectOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonConverter CARRIER = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        CARRIER.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("out", answered(JSON.readTree(line)));
            } catch (Exception error) {
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", error.getMessage());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        answers.flush();
    }

    static JsonNode answered(JsonNode question) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (Map.Entry<String, JsonNode> one : question.get("options").properties())
            options.put(one.getKey(), one.getValue().isNull() ? null : one.getValue().asText());
        Object made = Class.forName(question.get("class").asText()).getDeclaredConstructor().newInstance();
        switch (question.get("do").asText()) {
            case "write": {
                Converter converter = (Converter) made;
                converter.configure(options, false);
                SchemaAndValue value = carried(question.get("value"));
                return bytes(converter.fromConnectData("topic", value.schema(), value.value()));
            }
            case "read": {
                Converter converter = (Converter) made;
                converter.configure(options, false);
                JsonNode content = question.get("bytes");
                return carrying(converter.toConnectData("topic", content.isNull() ? null : unbytes(content)));
            }
            case "transform": {
                @SuppressWarnings({"unchecked", "rawtypes"})
                Transformation transform = (Transformation) made;
                transform.configure(options);
                boolean fromSource = question.path("source").asBoolean();
                ArrayNode out = JSON.createArrayNode();
                for (JsonNode one : question.get("records")) {
                    ObjectNode answer = JSON.createObjectNode();
                    try {
                        ConnectRecord<?> record = transform.apply(fromSource ? sourced(record(one)) : record(one));
                        answer.set("out", record == null ? null : written(record));
                    } catch (Exception error) {
                        answer.put("error", error.getClass().getSimpleName());
                        answer.put("message", error.getMessage());
                    }
                    out.add(answer);
                }
                return out;
            }
            default: {
                @SuppressWarnings("unchecked")
                Predicate<SinkRecord> predicate = (Predicate<SinkRecord>) made;
                predicate.configure(options);
                ArrayNode out = JSON.createArrayNode();
                for (JsonNode one : question.get("records"))
                    out.add(predicate.test(record(one)));
                return out;
            }
        }
    }

    static SinkRecord record(JsonNode said) {
        SchemaAndValue key = carried(said.get("key"));
        SchemaAndValue value = carried(said.get("value"));
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : said.get("headers"))
            headers.add(header.get(0).asText(), carried(header.get(1)));
        JsonNode timestamp = said.get("timestamp");
        return new SinkRecord(said.get("topic").asText(), said.get("partition").asInt(), key.schema(), key.value(),
            value.schema(), value.value(), said.get("offset").asLong(), timestamp.isNull() ? null : timestamp.asLong(),
            TimestampType.CREATE_TIME, headers);
    }

    // The same as a source's: some transforms take the partition away, which only such a record can do without.
    static SourceRecord sourced(SinkRecord record) {
        return new SourceRecord(Map.of(), Map.of(), record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
            record.valueSchema(), record.value(), record.timestamp(), record.headers());
    }

    static ObjectNode written(ConnectRecord<?> record) {
        ObjectNode said = JSON.createObjectNode();
        said.put("topic", record.topic());
        said.put("partition", record.kafkaPartition());
        said.put("timestamp", record.timestamp());
        said.set("key", carrying(new SchemaAndValue(record.keySchema(), record.key())));
        said.set("value", carrying(new SchemaAndValue(record.valueSchema(), record.value())));
        ArrayNode headers = said.putArray("headers");
        for (Header header : record.headers())
            headers.addArray().add(header.key()).add(carrying(new SchemaAndValue(header.schema(), header.value())));
        return said;
    }

    static SchemaAndValue carried(JsonNode content) {
        return content.isNull() ? SchemaAndValue.NULL : CARRIER.toConnectData("topic", unbytes(content));
    }

    static JsonNode carrying(SchemaAndValue value) {
        return bytes(CARRIER.fromConnectData("topic", value.schema(), value.value()));
    }

    static JsonNode bytes(byte[] content) {
        return content == null ? JSON.nullNode() : JSON.getNodeFactory().textNode(Base64.getEncoder().encodeToString(content));
    }

    static byte[] unbytes(JsonNode content) {
        return Base64.getDecoder().decode(content.asText());
    }
}
