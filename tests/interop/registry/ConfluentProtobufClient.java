// Confluent's Java serializers of Protobuf with a registry: URL TOPIC. Prints a message that it has serialized, and reads
// such lines, each of which it deserializes and prints as JSON.

import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchemaProvider;
import io.confluent.kafka.serializers.protobuf.KafkaProtobufDeserializer;
import io.confluent.kafka.serializers.protobuf.KafkaProtobufSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.List;
import java.util.Map;

public class ConfluentProtobufClient {
    static final String TEXT = "syntax = \"proto3\";\npackage shop;\n\nmessage Other {\n  int32 x = 1;\n}\nmessage Order {\n"
            + "  int64 id = 1;\n  string customer = 2;\n  repeated Line lines = 3;\n\n  message Line {\n    string sku = 1;\n"
            + "    double price = 2;\n  }\n}\n";

    public static void main(String[] arguments) {
        try {
            run(arguments);
        } catch (Throwable error) {
            error.printStackTrace(); // Java 17 cannot show what a program that it has compiled itself throws.
            System.exit(1);
        }
    }

    static void run(String[] arguments) throws Exception {
        String url = arguments[0], topic = arguments[1];
        CachedSchemaRegistryClient client = new CachedSchemaRegistryClient(
                List.of(url), 100, List.of(new ProtobufSchemaProvider()), Map.of(), Map.of());
        Map<String, Object> settings = Map.of("schema.registry.url", url);
        KafkaProtobufSerializer<Message> serializer = new KafkaProtobufSerializer<>(client, settings);
        KafkaProtobufDeserializer<Message> deserializer = new KafkaProtobufDeserializer<>(client, settings);
        for (String name : List.of("shop.Order", "shop.Order.Line")) {
            ProtobufSchema schema = new ProtobufSchema(TEXT, List.of(), Map.of(), null, name);
            DynamicMessage.Builder made = schema.newMessageBuilder();
            if (name.equals("shop.Order")) {
                made.setField(made.getDescriptorForType().findFieldByName("id"), 5L << 40);
                made.setField(made.getDescriptorForType().findFieldByName("customer"), "Æsop");
            } else {
                made.setField(made.getDescriptorForType().findFieldByName("sku"), "s");
                made.setField(made.getDescriptorForType().findFieldByName("price"), 0.25);
            }
            System.out.println("written " + Base64.getEncoder().encodeToString(serializer.serialize(topic, made.build())));
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            Message read = deserializer.deserialize(topic, Base64.getDecoder().decode(line));
            System.out.println("read " + JsonFormat.printer().omittingInsignificantWhitespace().print(read));
        }
    }
}
