import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/**
 * Apache Kafka's rates and token buckets. Reads lines: "rate|bucket WINDOWS SIZE_S LIMIT" begins one, "VALUE NOW_MS"
 * records. After each recording it prints the measured value, and of a rate the time that it was measured over.
 */
public class Quotas {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        Rate rate = null;
        TokenBucket bucket = null;
        MetricConfig config = null;
        StringBuilder told = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            if (words.length == 4) {
                config = new MetricConfig()
                    .samples(Integer.parseInt(words[1]))
                    .timeWindow(Long.parseLong(words[2]), TimeUnit.SECONDS)
                    .quota(Quota.upperBound(Double.parseDouble(words[3])));
                rate = words[0].equals("rate") ? new Rate() : null;
                bucket = words[0].equals("bucket") ? new TokenBucket() : null;
                continue;
            }
            double value = Double.parseDouble(words[0]);
            long nowMs = Long.parseLong(words[1]);
            if (rate != null) {
                rate.record(config, value, nowMs);
                told.append(rate.measure(config, nowMs)).append(' ').append(rate.windowSize(config, nowMs)).append('\n');
            } else {
                bucket.record(config, value, nowMs);
                told.append(bucket.measure(config, nowMs)).append('\n');
            }
        }
        System.out.print(told);
    }
}
