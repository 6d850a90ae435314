// Confluent's Java client and Avro serializers with a registry and a broker: BOOTSTRAP URL WRITES READS COUNT.
// Writes COUNT records to the topic WRITES, reads COUNT from READS and prints each as JSON, and what the registry said.

import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaMetadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class ConfluentAvroClient {
    static final String ORDER = "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":["
            + "{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"customer\",\"type\":[\"null\",\"string\"],\"default\":null},"
            + "{\"name\":\"lines\",\"type\":{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"Line\",\"fields\":["
            + "{\"name\":\"sku\",\"type\":\"string\"},{\"name\":\"price\",\"type\":\"double\"}]}}},"
            + "{\"name\":\"tags\",\"type\":{\"type\":\"map\",\"values\":\"int\"}},{\"name\":\"raw\",\"type\":\"bytes\"}]}";

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], url = arguments[1], writes = arguments[2], reads = arguments[3];
        int count = Integer.parseInt(arguments[4]);
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("schema.registry.url", url);
        settings.put("key.serializer", KafkaAvroSerializer.class);
        settings.put("value.serializer", KafkaAvroSerializer.class);
        settings.put("key.deserializer", KafkaAvroDeserializer.class);
        settings.put("value.deserializer", KafkaAvroDeserializer.class);
        settings.put("group.id", "java");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.idempotence", true);
        Schema order = new Schema.Parser().parse(ORDER);
        try (KafkaProducer<Object, Object> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < count; number++) {
                GenericRecord line = new GenericData.Record(order.getField("lines").schema().getElementType());
                line.put("sku", "sku" + number);
                line.put("price", number / 4.0);
                GenericRecord made = new GenericData.Record(order);
                made.put("id", (long) number << 33);
                made.put("customer", number % 3 == 0 ? null : "c" + number);
                made.put("lines", List.of(line, line));
                made.put("tags", Map.of("a", number));
                made.put("raw", ByteBuffer.wrap(new byte[] {0, (byte) number}));
                producer.send(new ProducerRecord<>(writes, "k" + number, made)).get();
            }
        }
        int seen = 0;
        try (KafkaConsumer<Object, Object> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(reads));
            for (long until = System.nanoTime() + 60_000_000_000L; seen < count && System.nanoTime() < until; ) {
                for (ConsumerRecord<Object, Object> record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println("record " + record.value());
                    seen++;
                }
            }
        }
        CachedSchemaRegistryClient client = new CachedSchemaRegistryClient(url, 100);
        say("api", () -> api(client, url));
        System.exit(seen == count ? 0 : 1);
    }

    static Object api(CachedSchemaRegistryClient client, String url) throws Exception {
        AvroSchema first = new AvroSchema("{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}");
        AvroSchema second = new AvroSchema("{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
                + "{\"name\":\"b\",\"type\":\"int\",\"default\":1}]}");
        int id = client.register("java", first);
        say("same id", () -> client.register("java", first) == id);
        say("id of", () -> client.getId("java", first) == id);
        say("compatible", () -> client.testCompatibility("java", second));
        say("incompatible", () -> client.testCompatibilityVerbose("java", new AvroSchema("\"int\"")).size() > 0);
        say("refused", () -> client.register("java", new AvroSchema("\"int\"")));
        int other = client.register("java", second);
        say("versions", () -> client.getAllVersions("java"));
        say("version of", () -> client.getVersion("java", second));
        SchemaMetadata latest = client.getLatestSchemaMetadata("java");
        say("latest", () -> latest.getId() == other && latest.getSchema().equals(second.canonicalString()));
        say("by id", () -> new CachedSchemaRegistryClient(url, 10)
                .getSchemaById(other).canonicalString().equals(second.canonicalString()));
        say("subjects of id", () -> new TreeSet<>(client.getAllSubjectsById(other)));
        say("level", () -> client.updateCompatibility("java", "FULL") + " " + client.getCompatibility("java"));
        say("mode", () -> client.setMode("READONLY", "java") + " " + client.getMode("java"));
        say("read only", () -> client.register("java", new AvroSchema("\"long\"")));
        say("mode again", () -> client.setMode("READWRITE", "java"));
        AvroSchema referring = new AvroSchema("{\"type\":\"record\",\"name\":\"Q\",\"fields\":[{\"name\":\"r\",\"type\":\"R\"}]}",
                List.of(new SchemaReference("R", "java", 1)), Map.of("R", first.canonicalString()), null);
        client.register("java-ref", referring);
        say("referred to", () -> client.deleteSchemaVersion("java", "1"));
        AvroSchema owned = new AvroSchema("\"bytes\"", List.of(), Map.of(),
                new Metadata(null, Map.of("owner", "me"), null), null, null, false);
        client.register("java-meta", owned);
        say("with metadata", () -> client.getLatestWithMetadata("java-meta", Map.of("owner", "me"), false).getVersion());
        int inContext = client.register(":.other:java", first);
        say("contexts", () -> client.getAllContexts());
        say("in context", () -> client.getSchemaBySubjectAndId(":.other:java", inContext).canonicalString().equals(first.canonicalString()));
        say("missing", () -> client.getSchemaMetadata("nobody", 1));
        say("missing version", () -> client.getSchemaMetadata("java", 99));
        say("deleted", () -> client.deleteSubject("java-ref"));
        say("deleted for good", () -> client.deleteSubject("java-ref", true));
        say("all", () -> new TreeSet<>(client.getAllSubjectsByPrefix("java")));
        return "done";
    }

    static void say(String what, Callable<Object> said) throws Exception {
        Object answer;
        try {
            answer = said.call();
        } catch (RestClientException error) {
            answer = "error " + error.getStatus() + " " + error.getErrorCode();
        }
        System.out.println(what + ": " + answer);
    }
}
