import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/**
 * What the golden directories are made of: each argument after the bootstrap address names one step.
 *
 * A producer lingers for ever and is flushed by hand, so one `batch(...)` is one record batch in the log. Timestamps are
 * given, counted from T0, wherever the topic keeps them. make_golden.py orders the steps around restarts and kills.
 */
public class Workload {
    static final long T0 = 1_700_000_000_000L;
    static final byte[] NONE = null;

    final String bootstrap;
    final Admin admin;

    Workload(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        Workload workload = new Workload(args[0]);
        for (int i = 1; i < args.length; i++) {
            String[] step = args[i].split("=", 2);
            switch (step[0]) {
                case "topics" -> workload.topics();
                case "plain" -> workload.plain();
                case "codecs" -> workload.codecs();
                case "large" -> workload.large();
                case "recompressed" -> workload.recompressed();
                case "timestamps" -> workload.timestamps();
                case "idempotent" -> workload.idempotent(Integer.parseInt(step[1]));
                case "transactions" -> workload.transactions();
                case "compacted" -> workload.compacted();
                case "compacted-again" -> workload.compactedAgain();
                case "freeze-compaction" -> workload.freezeCompaction();
                case "epochs" -> workload.epochs(step[1]);
                case "retention" -> workload.retention();
                case "groups" -> workload.groups();
                case "share" -> workload.share();
                case "cluster" -> workload.cluster();
                case "open-transaction" -> workload.openTransaction();
                case "expected" -> workload.expected(Path.of(step[1]));
                default -> throw new IllegalArgumentException(args[i]);
            }
        }
        // Not exit(): an open transaction must stay open, and close() would abort it.
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    // ---- steps ----------------------------------------------------------------------------------------------------

    void topics() throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        topics.add(topic("plain", 2));
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd"))
            topics.add(topic(codec, 1, "index.interval.bytes", "512"));
        topics.add(topic("large", 1));
        topics.add(topic("recompressed", 1, "compression.type", "zstd", "compression.zstd.level", "9"));
        topics.add(topic("create-time", 1, "index.interval.bytes", "100", "internal.segment.bytes", "2000"));
        topics.add(topic("append-time", 1, "message.timestamp.type", "LogAppendTime", "index.interval.bytes", "100"));
        topics.add(topic("idempotent", 1, "index.interval.bytes", "200", "internal.segment.bytes", "2000"));
        // Rolls because its indexes are full: 64 bytes are 8 offset entries and 5 time entries.
        topics.add(topic("full-index", 1, "index.interval.bytes", "0", "segment.index.bytes", "64"));
        topics.add(topic("transactions", 1, "index.interval.bytes", "150", "internal.segment.bytes", "1500"));
        topics.add(topic("compacted", 1, "cleanup.policy", "compact", "internal.segment.bytes", "1500",
            "min.cleanable.dirty.ratio", "0.001", "index.interval.bytes", "100"));
        topics.add(topic("compacted-expired", 1, "cleanup.policy", "compact", "internal.segment.bytes", "800",
            "min.cleanable.dirty.ratio", "0.001", "delete.retention.ms", "0", "index.interval.bytes", "100"));
        topics.add(topic("epochs", 1, "index.interval.bytes", "100"));
        topics.add(topic("deleted-records", 1, "internal.segment.bytes", "1000", "index.interval.bytes", "100"));
        topics.add(topic("retained", 1, "internal.segment.bytes", "1000", "retention.bytes", "2500"));
        // Keeps its deleted segments as .deleted files for longer than the run.
        topics.add(topic("deleting", 1, "internal.segment.bytes", "1000", "retention.bytes", "2500",
            "file.delete.delay.ms", "86400000"));
        topics.add(topic("empty", 1));
        topics.add(topic("dropped", 1));
        admin.createTopics(topics).all().get();
    }

    void plain() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("enable.idempotence", "false")) {
            for (int partition = 0; partition < 2; partition++) {
                List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
                records.add(record("plain", partition, T0, "key", "value"));
                records.add(record("plain", partition, T0 + 1, null, "no key"));
                records.add(record("plain", partition, T0 + 2, "no value", null));
                records.add(new ProducerRecord<>("plain", partition, T0 + 3, NONE, NONE));
                records.add(record("plain", partition, T0 + 4, "", ""));
                records.add(record("plain", partition, T0 + 5, "ключ", "värde \uD83D\uDC2B"));
                ProducerRecord<byte[], byte[]> headers = record("plain", partition, T0 + 6, "headers", "three");
                headers.headers().add("trace", utf8("abc")).add(new RecordHeader("nothing", NONE)).add("", utf8(""));
                records.add(headers);
                ProducerRecord<byte[], byte[]> repeated = record("plain", partition, T0 + 7, "headers", "repeated");
                repeated.headers().add("again", utf8("1")).add("again", utf8("2"));
                records.add(repeated);
                batch(producer, records);
                batch(producer, List.of(record("plain", partition, T0 + 100, "alone", "one")));
                batch(producer, numbered("plain", partition, T0 + 200, 25));
            }
        }
    }

    void codecs() throws Exception {
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd"))
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec)) {
                for (int i = 0; i < 6; i++)
                    batch(producer, numbered(codec, 0, T0 + i * 1000, 20));
                batch(producer, List.of(record(codec, 0, T0 + 9000, "alone", "one")));
            }
    }

    /** Values larger than one block of the snappy (32 KB) and lz4 (64 KB) framings, of every codec in one partition. */
    void large() throws Exception {
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd"))
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec)) {
                byte[] value = new byte[150_000];
                for (int i = 0; i < value.length; i++)
                    value[i] = (byte) ((i / 251) ^ (i % 7));
                batch(producer, List.of(
                    new ProducerRecord<>("large", 0, T0, utf8(codec), value), record("large", 0, T0 + 1, codec, "small")));
            }
    }

    void recompressed() throws Exception {
        for (String codec : List.of("none", "gzip", "lz4"))
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec)) {
                batch(producer, numbered("recompressed", 0, T0, 30));
            }
    }

    void timestamps() throws Exception {
        long[] outOfOrder = {5, 3, 9, 9, 1, 20, 2, 15, 21, 0, 40, 39, 41, 7, 60, 50, 61, 62, 8, 70};
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (long at : outOfOrder)
                batch(producer, List.of(
                    record("create-time", 0, T0 + at * 1000, "a", "at " + at),
                    record("create-time", 0, T0 + at * 1000 + 500, "b", "half a second later"),
                    record("create-time", 0, T0 + at * 1000 - 500, "c", "half a second earlier")));
        }
        for (String codec : List.of("none", "gzip", "zstd"))
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec)) {
                for (int i = 0; i < 4; i++)
                    batch(producer, numbered("append-time", 0, T0 + i, 5));
            }
    }

    void idempotent(int batches) throws Exception {
        List<KafkaProducer<byte[], byte[]>> producers = List.of(producer(), producer(), producer("compression.type", "lz4"));
        for (int i = 0; i < batches; i++)
            batch(producers.get(i % 3), numbered("idempotent", 0, T0 + i * 10, 1 + i % 4));
        for (int i = 0; i < 20; i++)
            batch(producers.get(0), List.of(record("full-index", 0, T0 + i, null, "v" + i)));
        for (KafkaProducer<byte[], byte[]> producer : producers)
            producer.close();
    }

    void transactions() throws Exception {
        KafkaProducer<byte[], byte[]> a = transactional("txn-a"), b = transactional("txn-b"), c = transactional("txn-c");
        try (KafkaProducer<byte[], byte[]> outside = producer()) {
            for (int round = 0; round < 4; round++) {
                long at = T0 + round * 1000;
                a.beginTransaction();
                batch(a, numbered("transactions", 0, at, 2));
                b.beginTransaction();
                batch(b, numbered("transactions", 0, at + 100, 3));
                batch(outside, numbered("transactions", 0, at + 200, 1));
                c.beginTransaction();
                batch(c, numbered("transactions", 0, at + 300, 2));
                batch(a, numbered("transactions", 0, at + 400, 1));
                b.abortTransaction();
                if (round % 2 == 0) c.commitTransaction(); else c.abortTransaction();
                batch(outside, numbered("transactions", 0, at + 500, 4));
                a.commitTransaction();
            }
            a.beginTransaction();
            batch(a, List.of(record("transactions", 0, T0 + 9000, "a", "a transaction of one record")));
            a.abortTransaction();
        }
        a.close();
        b.close();
        c.close();
    }

    void compacted() throws Exception {
        for (String topic : List.of("compacted", "compacted-expired")) {
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", "zstd")) {
                for (int round = 0; round < 6; round++) {
                    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
                    for (int key = 0; key < 8; key++)
                        records.add(record(topic, 0, T0 + round * 100 + key, "key-" + (key + round), "round " + round));
                    records.add(record(topic, 0, T0 + round * 100 + 50, "key-" + round, null));
                    batch(producer, records);
                }
            }
            KafkaProducer<byte[], byte[]> committing = transactional(topic + "-commits"), aborting = transactional(topic + "-aborts");
            for (int round = 0; round < 4; round++) {
                committing.beginTransaction();
                aborting.beginTransaction();
                batch(committing, List.of(record(topic, 0, T0 + 1000 + round, "txn", "committed " + round),
                    record(topic, 0, T0 + 1000 + round, "only-" + round, "committed")));
                batch(aborting, List.of(record(topic, 0, T0 + 1000 + round, "txn", "aborted " + round)));
                committing.commitTransaction();
                aborting.abortTransaction();
            }
            committing.close();
            aborting.close();
            try (KafkaProducer<byte[], byte[]> producer = producer()) {
                for (int i = 0; i < 6; i++)
                    batch(producer, numbered(topic, 0, T0 + 2000 + i, 5));
                batch(producer, List.of(record(topic, 0, T0 + 3000, "key-7", null), record(topic, 0, T0 + 3000, "n-4", null)));
                batch(producer, numbered("unrelated-" + topic, topic, 0, T0 + 3001, 12));
            }
        }
    }

    /** New dirty segments, without which the cleaner would not come back for the tombstones it kept. */
    void compactedAgain() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (String topic : List.of("compacted", "compacted-expired"))
                for (int i = 0; i < 6; i++)
                    batch(producer, numbered("again", topic, 0, T0 + 4000 + i, 10));
        }
    }

    /** So that the cleaner changes nothing between what a consumer sees and the stop. */
    void freezeCompaction() throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
        for (String topic : List.of("compacted", "compacted-expired"))
            changes.put(new ConfigResource(ConfigResource.Type.TOPIC, topic), List.of(set("min.cleanable.dirty.ratio", "1.0")));
        admin.incrementalAlterConfigs(changes).all().get();
    }

    void epochs(String name) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (int i = 0; i < 3; i++)
                batch(producer, numbered(name, "epochs", 0, T0 + i, 4));
        }
    }

    void retention() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            for (String topic : List.of("deleted-records", "retained", "deleting"))
                for (int i = 0; i < 12; i++)
                    batch(producer, numbered(topic, 0, System.currentTimeMillis(), 8));
        }
        admin.deleteRecords(Map.of(new TopicPartition("deleted-records", 0), RecordsToDelete.beforeOffset(45))).all().get();
    }

    void groups() throws Exception {
        for (String protocol : List.of("classic", "consumer")) {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted", "group.id", "group-" + protocol,
                    "group.protocol", protocol, "client.id", "client-" + protocol)) {
                consumer.subscribe(List.of("plain"));
                int seen = 0;
                for (int i = 0; i < 100 && seen < 68; i++)
                    seen += consumer.poll(Duration.ofMillis(200)).count();
                consumer.commitSync();
                consumer.commitSync(Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(3, Optional.of(0), "some metadata")));
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted", "group.id", "group-regex",
                "group.protocol", "consumer", "client.id", "client-regex")) {
            consumer.subscribe(new SubscriptionPattern("pl.*n"));
            for (int i = 0; i < 100 && consumer.assignment().isEmpty(); i++)
                consumer.poll(Duration.ofMillis(200));
        }
        admin.alterConsumerGroupOffsets("group-deleted", Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(1))).all().get();
        admin.deleteConsumerGroups(List.of("group-deleted")).all().get();
        try (KafkaProducer<byte[], byte[]> producer = transactional("txn-offsets");
                KafkaConsumer<byte[], byte[]> consumer = consumer("read_committed", "group.id", "group-txn")) {
            TopicPartition tp = new TopicPartition("plain", 1);
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(tp, new OffsetAndMetadata(7)), consumer.groupMetadata());
            producer.commitTransaction();
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(tp, new OffsetAndMetadata(9)), consumer.groupMetadata());
            producer.abortTransaction();
        }
    }

    void share() throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, "group-share"),
            List.of(set("share.auto.offset.reset", "earliest")))).all().get();
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", "group-share", "share.acknowledgement.mode", "explicit",
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class);
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(config)) {
            consumer.subscribe(List.of("plain"));
            int seen = 0;
            for (int i = 0; i < 100 && seen < 68; i++) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    AcknowledgeType kind = record.offset() % 10 == 3 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
                    consumer.acknowledge(record, kind);
                    seen++;
                }
                consumer.commitSync();
            }
        }
    }

    /** Fills the metadata log with records of many kinds. */
    void cluster() throws Exception {
        admin.deleteTopics(List.of("dropped")).all().get();
        admin.createPartitions(Map.of("empty", NewPartitions.increaseTo(2))).all().get();
        admin.incrementalAlterConfigs(Map.of(
            new ConfigResource(ConfigResource.Type.BROKER, ""), List.of(set("message.max.bytes", "1048588")),
            new ConfigResource(ConfigResource.Type.TOPIC, "empty"), List.of(set("retention.ms", "1000000")))).all().get();
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("someone",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "a password"))).all().get();
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "someone")),
            List.of(new ClientQuotaAlteration.Op("request_percentage", 12.5))))).all().get();
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "pl", PatternType.PREFIXED),
            new AccessControlEntry("User:someone", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBinding other = new AclBinding(new ResourcePattern(ResourceType.GROUP, "g", PatternType.LITERAL),
            new AccessControlEntry("User:someone", "127.0.0.1", AclOperation.ALL, AclPermissionType.DENY));
        admin.createAcls(List.of(acl, other)).all().get();
        admin.deleteAcls(List.of(other.toFilter())).all().get();
    }

    void openTransaction() throws Exception {
        KafkaProducer<byte[], byte[]> committed = transactional("txn-committed"), open = transactional("txn-open");
        open.beginTransaction();
        batch(open, numbered("transactions", 0, T0 + 10_000, 2));
        committed.beginTransaction();
        batch(committed, numbered("transactions", 0, T0 + 10_100, 2));
        committed.commitTransaction();
        batch(open, numbered("transactions", 0, T0 + 10_200, 1));
        committed.beginTransaction();
        batch(committed, numbered("transactions", 0, T0 + 10_300, 3));
        committed.abortTransaction();
    }

    // ---- what a consumer sees -------------------------------------------------------------------------------------

    void expected(Path directory) throws Exception {
        Files.createDirectories(directory);
        ObjectMapper mapper = new ObjectMapper();
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values())
            for (var partition : topic.partitions()) {
                TopicPartition tp = new TopicPartition(topic.name(), partition.partition());
                ObjectNode node = mapper.createObjectNode();
                ArrayNode committed = mapper.createArrayNode();
                ArrayNode records = mapper.createArrayNode();
                try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted")) {
                    consumer.assign(List.of(tp));
                    node.put("log_start_offset", consumer.beginningOffsets(List.of(tp)).get(tp));
                    node.put("high_watermark", consumer.endOffsets(List.of(tp)).get(tp));
                    for (ConsumerRecord<byte[], byte[]> record : readAll(consumer, tp))
                        records.add(asJson(mapper, record));
                }
                try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_committed")) {
                    consumer.assign(List.of(tp));
                    node.put("last_stable_offset", consumer.endOffsets(List.of(tp)).get(tp));
                    for (ConsumerRecord<byte[], byte[]> record : readAll(consumer, tp))
                        committed.add(record.offset());
                }
                StringBuilder text = new StringBuilder("{\n");
                node.fields().forEachRemaining(field -> text.append("\"" + field.getKey() + "\": " + field.getValue() + ",\n"));
                text.append("\"read_committed\": " + committed + ",\n\"records\": [");
                for (int i = 0; i < records.size(); i++)
                    text.append(i == 0 ? "\n" : ",\n").append(mapper.writeValueAsString(records.get(i)));
                text.append("\n]\n}\n");
                Files.writeString(directory.resolve(tp + ".json"), text);
            }
    }

    static List<ConsumerRecord<byte[], byte[]>> readAll(KafkaConsumer<byte[], byte[]> consumer, TopicPartition tp) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long end = consumer.endOffsets(List.of(tp)).get(tp);
        consumer.seekToBeginning(List.of(tp));
        while (consumer.position(tp) < end)
            consumer.poll(Duration.ofMillis(100)).forEach(records::add);
        return records;
    }

    static ObjectNode asJson(ObjectMapper mapper, ConsumerRecord<byte[], byte[]> record) throws Exception {
        ObjectNode node = mapper.createObjectNode();
        node.put("offset", record.offset()).put("timestamp", record.timestamp()).put("timestamp_type", record.timestampType().toString());
        record.leaderEpoch().ifPresent(epoch -> node.put("leader_epoch", epoch));
        node.put("key", record.key());
        if (record.value() != null && record.value().length > 1000)
            node.put("value_sha256", HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(record.value())));
        else
            node.put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        record.headers().forEach(header -> headers.addArray().add(header.key()).add(header.value()));
        return node;
    }

    // ---- small things ---------------------------------------------------------------------------------------------

    static NewTopic topic(String name, int partitions, String... config) {
        Map<String, String> map = new HashMap<>(Map.of("file.delete.delay.ms", "1000"));
        for (int i = 0; i < config.length; i += 2) map.put(config[i], config[i + 1]);
        return new NewTopic(name, partitions, (short) 1).configs(map);
    }

    static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    KafkaProducer<byte[], byte[]> producer(String... config) {
        Map<String, Object> map = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 60000, "batch.size", 1 << 20));
        for (int i = 0; i < config.length; i += 2) map.put(config[i], config[i + 1]);
        return new KafkaProducer<>(map, new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaProducer<byte[], byte[]> transactional(String id) {
        KafkaProducer<byte[], byte[]> producer = producer("transactional.id", id, "transaction.timeout.ms", "900000");
        producer.initTransactions();
        return producer;
    }

    KafkaConsumer<byte[], byte[]> consumer(String isolation, String... config) {
        Map<String, Object> map = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation,
            "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        for (int i = 0; i < config.length; i += 2) map.put(config[i], config[i + 1]);
        return new KafkaConsumer<>(map, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void batch(KafkaProducer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> record : records)
            sent.add(producer.send(record));
        producer.flush();
        for (var future : sent)
            future.get();
    }

    static List<ProducerRecord<byte[], byte[]>> numbered(String topic, int partition, long timestamp, int count) {
        return numbered("value", topic, partition, timestamp, count);
    }

    static List<ProducerRecord<byte[], byte[]>> numbered(String value, String topic, int partition, long timestamp, int count) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < count; i++)
            records.add(record(topic, partition, timestamp + i, "n-" + i, value + " number " + i + " of " + count));
        return records;
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int partition, long timestamp, String key, String value) {
        return new ProducerRecord<>(topic, partition, timestamp, utf8(key), utf8(value));
    }

    static byte[] utf8(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }
}
