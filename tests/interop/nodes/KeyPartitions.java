// Says where Kafka's own producer puts keys: for each line of "hex count" the partition.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

class KeyPartitions {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            byte[] key = HexFormat.of().parseHex(words[0]);
            out.append(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(words[1]))).append('\n');
        }
        System.out.print(out);
    }
}
