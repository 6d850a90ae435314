// Asks Apache Kafka which texts it accepts for each of its settings, which settings are dynamic, and which broker
// settings stand behind a topic's, and prints the answers as JSON.
//   java -cp "<directory of Apache Kafka's jars>/*" KafkaVerdicts.java > kafka_verdicts.json
// CLASS settings are left out: Kafka loads the class, and there is none of ours to load.

import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

public class KafkaVerdicts {
    static final String[] TEXTS = {
        "", " ", "0", "1", "-1", "-2", "-3", "2", "4", "5", "6", "9", "10", "11", "17", "18", "22", "23", "25", "26",
        "99", "100", "500", "501", "900", "901", "1000", "1023", "1024", "2000", "2001", "3600", "3601", "5000",
        "10000", "10001", "30000", "30001", "86400", "86401", "524287", "524288", "1048575", "1048576", "3600000",
        "3600001", "8388607", "8388608", "-131072", "-131073", "32767", "32768", "-32768", "2147483647", "2147483648",
        "-2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "+7", "007", "- 1", "1_0", "0x10", "1L", "\u0663", "\u00a05", " 5\t",
        "0.5", ".5", "5.", ".", "1e3", "1e", "1.0", "1.0001", "0.25", "0.26", "0.49", "-0.0", "NaN", "nan", "Infinity",
        "-Infinity", "inf", "1d", "1.5F", "1__0.5",
        "true", " TRUE ", "False", "yes", "null",
        "delete", "compact", "delete,compact", "compact , delete", "delete,delete", "Delete", "compact,",
        "a,b", "a, b", "a,,b", "a,a", ",", "broker", "controller", "broker,controller", "classic", "consumer,classic",
        "uncompressed", "gzip", "GZIP", "none", "producer", "zstd", "CreateTime", "createtime", "LogAppendTime",
        "required", "requested", "REQUIRED", "PLAINTEXT", "plaintext", "SASL_SSL", "RS256", "es256", "HS256",
        "bidirectional", "Upgrade", "all", "ALL", "use_all_dns_ips", "default", "INFO", "debug", "TRACE", "WARN",
        "rebootstrap", "NONE", "consumer", "CONSUMER", "read_committed", "Read_Committed", "implicit", "EXPLICIT",
        "explicit", "batch_optimized", "BATCH_OPTIMIZED", "record_limit",
        "latest", "Latest", "earliest", "by_duration:P3D", "by_duration:PT1H30M", "by_duration:-P1D", "by_duration:",
        "by_duration:3 days", "by_duration:PT0.5S", "by_duration:P1DT", "by_duration:p1d", "by_duration:P1M",
        "1@h:1", "1@h:1,2@i:2", "1@h:1,1@h:1", "x@h:1", "1@h", "@h:1", "1@:1", "h:1", "h", "h:x", "[::1]:1", "h:1,i:2",
        "1:2", "1:2,3:4", "*", "1:x", "1:2:3", "1:2,", "*,1:2",
    };

    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c < ' ' || c > '~' || c == '"' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append('"').toString();
    }

    static char verdict(ConfigDef def, ConfigDef.ConfigKey key, String text) {
        try {
            Object value = ConfigDef.parseType(key.name, text, key.type);
            if (key.validator != null)
                key.validator.ensureValid(key.name, value);
            return 'y';
        } catch (ConfigException refused) {
            return '.';
        }
    }

    static String table(ConfigDef def) {
        Map<String, List<String>> namesByVerdicts = new TreeMap<>();
        for (String name : new TreeSet<>(def.names())) {
            ConfigDef.ConfigKey key = def.configKeys().get(name);
            if (key.internalConfig || key.type == ConfigDef.Type.CLASS)
                continue;
            StringBuilder verdicts = new StringBuilder();
            for (String text : TEXTS)
                verdicts.append(verdict(def, key, text));
            namesByVerdicts.computeIfAbsent(verdicts.toString(), v -> new ArrayList<>()).add(quote(name));
        }
        return namesByVerdicts.entrySet().stream()
            .map(e -> "   " + quote(e.getKey()) + ": [" + String.join(", ", e.getValue()) + "]")
            .collect(Collectors.joining(",\n", "{\n", "}"));
    }

    static String modes() {
        return new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes()).entrySet().stream()
            .map(e -> "   " + quote(e.getKey()) + ": " + quote(e.getValue())).collect(Collectors.joining(",\n", "{\n", "}"));
    }

    /** Each synonym with what it makes of 1. */
    static String synonyms() {
        List<String> rows = new ArrayList<>();
        for (var entry : new TreeMap<>(ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS).entrySet()) {
            List<String> pairs = new ArrayList<>();
            for (ConfigSynonym synonym : entry.getValue())
                pairs.add("[" + quote(synonym.name()) + ", " + synonym.converter().apply("1") + "]");
            rows.add("   " + quote(entry.getKey()) + ": [" + String.join(", ", pairs) + "]");
        }
        return "{\n" + String.join(",\n", rows) + "}";
    }

    public static void main(String[] args) throws Exception {
        Map<String, ConfigDef> scopes = new LinkedHashMap<>();
        // KafkaConfig is compiled Scala, which the source launcher cannot link against directly.
        scopes.put("broker", (ConfigDef) Class.forName("kafka.server.KafkaConfig").getMethod("configDef").invoke(null));
        scopes.put("topic", LogConfig.configDefCopy());
        scopes.put("producer", ProducerConfig.configDef());
        scopes.put("consumer", ConsumerConfig.configDef());
        scopes.put("admin", AdminClientConfig.configDef());
        System.out.println("{\"texts\": [" + Arrays.stream(TEXTS).map(KafkaVerdicts::quote).collect(Collectors.joining(", ")) + "],");
        System.out.println("  \"dynamic\": " + modes() + ",\n  \"synonyms\": " + synonyms() + ",");
        System.out.println(scopes.entrySet().stream()
            .map(e -> "  " + quote(e.getKey()) + ": " + table(e.getValue())).collect(Collectors.joining(",\n")) + "}");
    }
}
