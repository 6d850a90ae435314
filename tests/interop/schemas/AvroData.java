// Reads values in hexadecimal with a writer's and a reader's schema, writes them again with the reader's: what a resolution
// gives, in bytes. A JSON object a line.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

public class AvroData {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode question = mapper.readTree(line);
            ObjectNode answer = mapper.createObjectNode();
            try {
                Schema writer = parsed(question.get("writer").asText());
                Schema reader = parsed(question.get("reader").asText());
                byte[] content = HexFormat.of().parseHex(question.get("content").asText());
                Object value = new GenericDatumReader<>(writer, reader, new GenericData())
                        .read(null, DecoderFactory.get().binaryDecoder(content, null));
                ByteArrayOutputStream written = new ByteArrayOutputStream();
                BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(written, null);
                new GenericDatumWriter<>(reader, new GenericData()).write(value, encoder);
                encoder.flush();
                answer.put("content", HexFormat.of().formatHex(written.toByteArray()));
            } catch (Exception | StackOverflowError error) {
                answer.put("error", String.valueOf(error));
            }
            out.println(mapper.writeValueAsString(answer));
        }
        out.flush();
    }

    static Schema parsed(String text) {
        Schema.Parser parser = new Schema.Parser(NameValidator.UTF_VALIDATOR);
        parser.setValidateDefaults(false);
        return parser.parse(text);
    }
}
