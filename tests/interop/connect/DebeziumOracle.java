import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import java.io.FileReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Base64;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;

/**
 * Runs Debezium's connector in its own engine and prints every record as a line of JSON: topic, key, value, headers,
 * source partition and offset. Keys, values and headers are the bytes of Kafka's JsonConverter, with schemas, in Base64.
 *
 * The argument is a file of the engine's properties. `oracle.offsets` names a file with two lines, the key and the value
 * of an offsets record: where the connector goes on. The program runs until its standard input ends.
 */
public class DebeziumOracle {
    static final JsonConverter KEYS = new JsonConverter();
    static final JsonConverter VALUES = new JsonConverter();
    static final JsonConverter PLAIN = new JsonConverter();

    public static class GivenOffsets extends MemoryOffsetBackingStore {
        @Override
        public void configure(WorkerConfig config) {
            super.configure(config);
            Object file = config.originals().get("oracle.offsets");
            if (file == null) {
                return;
            }
            try {
                List<String> lines = Files.readAllLines(Path.of(file.toString()));
                data.put(bytes(lines.get(0)), bytes(lines.get(1)));
            } catch (java.io.IOException error) {
                throw new RuntimeException(error);
            }
        }

        @Override
        public java.util.Set<Map<String, Object>> connectorPartitions(String connector) {
            return java.util.Set.of();
        }

        private static ByteBuffer bytes(String text) {
            return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(arguments[0], StandardCharsets.UTF_8)) {
            properties.load(reader);
        }
        KEYS.configure(Map.of("schemas.enable", true), true);
        // A null that has a default is shown as null, to see what the record has.
        VALUES.configure(Map.of("schemas.enable", true, "replace.null.with.default", false), false);
        PLAIN.configure(Map.of("schemas.enable", false), false);
        DebeziumEngine<RecordChangeEvent<SourceRecord>> engine = DebeziumEngine
                .create(io.debezium.engine.format.ChangeEventFormat.of(Connect.class))
                .using(properties)
                .using(DebeziumOracle.class.getClassLoader())
                .using((success, message, error) -> {
                    System.err.println("engine ended: " + success + " " + message);
                    if (error != null) {
                        error.printStackTrace();
                    }
                    System.exit(success ? 0 : 1);
                })
                .notifying((List<RecordChangeEvent<SourceRecord>> records,
                        DebeziumEngine.RecordCommitter<RecordChangeEvent<SourceRecord>> committer) -> {
                    for (RecordChangeEvent<SourceRecord> one : records) {
                        out.println(shown(one.record()));
                        out.flush();
                        committer.markProcessed(one);
                    }
                    committer.markBatchFinished();
                })
                .build();
        Thread thread = new Thread(engine, "engine");
        thread.start();
        while (System.in.read() >= 0) {
            // Until the other side closes.
        }
        engine.close();
        System.exit(0);
    }

    static String shown(SourceRecord record) {
        StringBuilder line = new StringBuilder("{\"topic\":").append(quoted(record.topic()));
        line.append(",\"key\":").append(base64(KEYS.fromConnectData(record.topic(), record.keySchema(), record.key())));
        line.append(",\"value\":");
        line.append(base64(VALUES.fromConnectData(record.topic(), record.valueSchema(), record.value())));
        line.append(",\"partition\":").append(map(record.sourcePartition()));
        line.append(",\"offset\":").append(map(record.sourceOffset()));
        line.append(",\"timestamp\":").append(record.timestamp());
        line.append(",\"headers\":[");
        boolean first = true;
        for (Header header : record.headers()) {
            line.append(first ? "" : ",").append("[").append(quoted(header.key())).append(",");
            line.append(base64(VALUES.fromConnectData(record.topic(), header.schema(), header.value()))).append("]");
            first = false;
        }
        return line.append("]}").toString();
    }

    static String map(Map<String, ?> value) {
        return new String(PLAIN.fromConnectData("", null, value), StandardCharsets.UTF_8);
    }

    static String quoted(String text) {
        return new String(PLAIN.fromConnectData("", Schema.STRING_SCHEMA, text), StandardCharsets.UTF_8);
    }

    static String base64(byte[] content) {
        return content == null ? "null" : "\"" + Base64.getEncoder().encodeToString(content) + "\"";
    }
}
