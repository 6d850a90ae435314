import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Locale;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Utils;

/**
 * Segments in the formats before version 2. Today's brokers no longer write them, but Kafka's own record classes still
 * can, and a data directory that has lived long enough still holds them.
 */
public class LegacyLogs {
    static final long T0 = 1_400_000_000_000L;

    public static void main(String[] args) throws Exception {
        for (byte magic = 0; magic < 2; magic++)
            for (CompressionType codec : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4})
                for (TimestampType type : magic == 0 ? new TimestampType[] {TimestampType.NO_TIMESTAMP_TYPE} : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    String suffix = type == TimestampType.LOG_APPEND_TIME ? "-append-time-0" : "-0";
                    String name = "magic-" + magic + "-" + codec.name().toLowerCase(Locale.ROOT) + suffix;
                    Path log = Files.createDirectories(Path.of(args[0], name)).resolve("00000000000000000000.log");
                    write(log, magic, codec, type);
                    Files.createDirectories(Path.of(args[1]));
                    Files.writeString(Path.of(args[1], name + ".json"), read(log));
                }
    }

    static void write(Path log, byte magic, CompressionType codec, TimestampType type) throws Exception {
        try (FileChannel channel = FileChannel.open(log, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            for (int batch = 0; batch < 3; batch++) {
                ByteBuffer buffer = ByteBuffer.allocate(4096);
                MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, magic, Compression.of(codec).build(), type, batch * 5L, T0 + batch * 1000L);
                for (int i = 0; i < 5; i++) {
                    byte[] key = i == 1 ? null : Utils.utf8("key-" + i);
                    byte[] value = i == 2 ? null : Utils.utf8("value " + batch + "/" + i);
                    builder.appendWithOffset(batch * 5L + i, magic == 0 ? RecordBatch.NO_TIMESTAMP : T0 + batch * 1000L + i * 7L, key, value);
                }
                ByteBuffer built = builder.build().buffer();
                while (built.hasRemaining())
                    channel.write(built);
            }
        }
    }

    static String read(Path log) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        ArrayNode records = mapper.createArrayNode();
        try (FileRecords file = FileRecords.open(log.toFile(), false)) {
            for (FileLogInputStream.FileChannelRecordBatch batch : file.batches())
                for (org.apache.kafka.common.record.internal.Record record : batch) {
                    ObjectNode node = records.addObject().put("offset", record.offset()).put("timestamp", record.timestamp());
                    node.put("timestamp_type", batch.timestampType().toString());
                    node.put("key", record.hasKey() ? Utils.readBytes(record.key()) : null);
                    node.put("value", record.hasValue() ? Utils.readBytes(record.value()) : null);
                }
        }
        StringBuilder text = new StringBuilder("{\n\"records\": [");
        for (int i = 0; i < records.size(); i++)
            text.append(i == 0 ? "\n" : ",\n").append(records.get(i));
        return text.append("\n]\n}\n").toString();
    }
}
