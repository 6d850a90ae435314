import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * What Kafka's assignors decide. A line is a group, in JSON: the assignor's name, and rounds of topics (for each of
 * their partitions the racks of its replicas) and members (id, instance id, subscription in hexadecimal digits). The
 * answer is a line too: for each round and member the assignment as a leader sends it, and what the member's own
 * assignor will tell in its next subscription. Null stands for a round in which Kafka's assignor fails: the sticky one
 * does if a partition once was a member's that now has all it wants, and that nobody else wants.
 */
public class Assignors {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] ignored) throws Exception {
        JSON.getFactory().configure(JsonWriteFeature.ESCAPE_NON_ASCII.mappedFeature(), true);
        BufferedReader groups = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = groups.readLine(); line != null; line = groups.readLine()) {
            JsonNode group = JSON.readTree(line);
            ConsumerPartitionAssignor leader = assignor(group.get("assignor").asText());
            ArrayNode answer = JSON.createArrayNode();
            for (JsonNode round : group.get("rounds")) {
                try {
                    answer.add(divide(leader, round));
                } catch (NullPointerException bug) {
                    answer.addNull();
                }
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    static ObjectNode divide(ConsumerPartitionAssignor leader, JsonNode round) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : round.get("members")) {
            byte[] told = HexFormat.of().parseHex(member.get(2).asText());
            Subscription subscription = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(told));
            subscription.setGroupInstanceId(Optional.ofNullable(member.get(1).textValue()));
            subscriptions.put(member.get(0).asText(), subscription);
        }
        Map<String, Assignment> division =
            leader.assign(cluster(round.get("topics")), new GroupSubscription(subscriptions)).groupAssignment();
        ObjectNode answer = JSON.createObjectNode();
        division.forEach((member, assignment) -> {
            ConsumerPartitionAssignor own = assignor(leader.name());
            own.onAssignment(assignment, new ConsumerGroupMetadata("group", 7, member, Optional.empty()));
            ByteBuffer userData = own.subscriptionUserData(Set.of());
            answer.putArray(member)
                .add(hex(ConsumerProtocol.serializeAssignment(assignment)))
                .add(userData == null ? null : hex(userData));
        });
        return answer;
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static Cluster cluster(JsonNode topics) {
        Set<Node> nodes = new HashSet<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(new Node(nodes.size(), "host", 9092, rack.asText()));
                    nodes.add(replicas.get(replicas.size() - 1));
                }
                if (replicas.isEmpty()) {
                    replicas.add(new Node(nodes.size(), "host", 9092));
                    nodes.add(replicas.get(0));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number++, all[0], all, all));
            }
        });
        return new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
    }
}
