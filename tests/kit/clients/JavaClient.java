import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client as one of the tests' foreign clients: answers requests on its standard input, in
 * the rows that rows.py describes, until that ends. The same source serves every version of the
 * client: nothing in it is younger than 3.9 or gone from 4.x.
 */
public final class JavaClient {
    private static final long TIMEOUT_SECONDS = 90;

    /** ConfigEntry's sources with the numbers that the protocol has for them. */
    private static final Map<ConfigEntry.ConfigSource, Integer> SOURCES = Map.of(
        ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, 1,
        ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, 2,
        ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, 3,
        ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG, 4,
        ConfigEntry.ConfigSource.DEFAULT_CONFIG, 5);

    private final List<Object[]> answer = new ArrayList<>();

    /** Something that answers requests; `say` adds a row to the answer. */
    interface Service {
        void serve(byte[][] request, List<byte[][]> rows, Consumer<Object[]> say) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        answerAll((request, rows, say) -> {
            JavaClient client = new JavaClient();
            client.serve(request, rows);
            client.answer.forEach(say);
        });
    }

    /** Answers requests until there are no more. */
    static void answerAll(Service service) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        for (String head = in.readLine(); head != null; head = in.readLine()) {
            List<byte[][]> request = new ArrayList<>();
            for (int left = Integer.parseInt(head); left > 0; left--) {
                request.add(decoded(in.readLine()));
            }
            List<Object[]> rows = new ArrayList<>();
            try {
                rows.add(new Object[] {"ok"});
                service.serve(request.get(0), request.subList(1, request.size()), rows::add);
            } catch (Exception error) {
                error.printStackTrace();
                rows.clear();
                rows.add(failure(error));
            }
            StringBuilder lines = new StringBuilder().append(rows.size()).append('\n');
            for (Object[] row : rows) {
                lines.append(encoded(row)).append('\n');
            }
            out.print(lines);
            out.flush();
        }
    }

    private static Object[] failure(Exception error) {
        Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
        if (cause instanceof CommitFailedException) {
            return new Object[] {"refused", Errors.UNKNOWN_MEMBER_ID.code()}; // has none of its own
        }
        return cause instanceof ApiException
            ? new Object[] {"refused", Errors.forException(cause).code()}
            : new Object[] {"failed", cause.toString()};
    }

    private void serve(byte[][] request, List<byte[][]> rows) throws Exception {
        String verb = text(request[0]);
        String servers = text(request[1]);
        if (verb.equals("produce")) {
            produce(servers, request, rows);
        } else if (verb.equals("consume")) {
            consume(servers, text(request[2]), number(request[3]), number(request[4]));
        } else {
            try (Admin admin = Admin.create(settings(servers))) {
                administer(admin, verb, request, rows);
            }
        }
    }

    /** What every client needs: where, and how if the suites are secured. */
    static Properties settings(String servers) {
        Properties config = new Properties();
        String files = System.getenv("BARNABAS_CLIENT_FILES");
        if (files != null) {
            try (InputStream file = Files.newInputStream(Path.of(files, "java.properties"))) {
                config.load(file);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        config.put("bootstrap.servers", servers);
        return config;
    }

    private void produce(String servers, byte[][] request, List<byte[][]> rows) throws Exception {
        Properties config = settings(servers);
        config.put("compression.type", text(request[3]));
        config.put("acks", text(request[4]));
        config.put("enable.idempotence", number(request[5]) == 1);
        config.put("linger.ms", 20);
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, bytes, bytes)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (byte[][] row : rows) {
                sent.add(producer.send(record(text(request[2]), row)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                one.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, byte[][] row) {
        Long timestamp = row[3] == null ? null : Long.valueOf(text(row[3]));
        List<Header> headers = new ArrayList<>();
        for (int index = 4; index < row.length; index += 2) {
            headers.add(new RecordHeader(text(row[index]), row[index + 1]));
        }
        return new ProducerRecord<>(topic, number(row[0]), timestamp, row[1], row[2], headers);
    }

    private void consume(String servers, String topic, int partitions, int count) {
        Properties config = settings(servers);
        config.put("enable.auto.commit", false);
        config.put("fetch.max.wait.ms", 100);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            List<TopicPartition> assigned = new ArrayList<>();
            for (int number = 0; number < partitions; number++) {
                assigned.add(new TopicPartition(topic, number));
            }
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            long endsAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
            while (answer.size() < count && System.nanoTime() < endsAt) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(200))) {
                    answer.add(seen(one));
                }
            }
        }
    }

    private static Object[] seen(ConsumerRecord<byte[], byte[]> one) {
        List<Object> row = new ArrayList<>();
        row.add(one.partition());
        row.add(one.offset());
        row.add(one.timestamp());
        row.add(one.key());
        row.add(one.value());
        for (Header header : one.headers()) {
            row.add(header.key());
            row.add(header.value());
        }
        return row.toArray();
    }

    private void administer(Admin admin, String verb, byte[][] request, List<byte[][]> rows)
            throws Exception {
        String name = request.length > 2 ? text(request[2]) : null;
        switch (verb) {
            case "list_topics":
                admin.listTopics().names().get().forEach(topic -> say(topic));
                break;
            case "describe_topic":
                describeTopic(described(admin, name));
                break;
            case "topic_id":
                say(described(admin, name).topicId());
                break;
            case "create_topic":
                NewTopic topic = new NewTopic(name, number(request[3]), (short) 1);
                boolean validateOnly = number(request[4]) == 1;
                admin.createTopics(
                    List.of(topic.configs(pairs(rows))),
                    new CreateTopicsOptions().validateOnly(validateOnly)).all().get();
                break;
            case "create_partitions":
                NewPartitions partitions = NewPartitions.increaseTo(number(request[3]));
                admin.createPartitions(Map.of(name, partitions)).all().get();
                break;
            case "delete_topic":
                admin.deleteTopics(List.of(name)).all().get();
                break;
            case "delete_topic_by_id":
                Uuid id = Uuid.fromString(name);
                admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
                break;
            case "offset":
                offset(admin, new TopicPartition(name, 0), Long.parseLong(text(request[3])));
                break;
            case "describe_configs":
                describeConfigs(admin, resource(name, text(request[3])));
                break;
            case "change_configs":
                admin.incrementalAlterConfigs(
                    Map.of(resource(name, text(request[3])), changes(rows))).all().get();
                break;
            case "log_sizes":
                logSizes(admin);
                break;
            case "describe_cluster":
                DescribeClusterResult cluster = admin.describeCluster();
                say(cluster.controller().get().id(), ids(cluster.nodes().get()));
                break;
            default:
                throw new IllegalArgumentException("no such verb: " + verb);
        }
    }

    private static TopicDescription described(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private void describeTopic(TopicDescription topic) {
        for (TopicPartitionInfo one : topic.partitions()) {
            say(one.partition(), one.leader().id(), ids(one.replicas()), ids(one.isr()));
        }
    }

    private void offset(Admin admin, TopicPartition partition, long asked) throws Exception {
        OffsetSpec spec =
            asked == -1 ? OffsetSpec.latest()
            : asked == -2 ? OffsetSpec.earliest()
            : asked == -3 ? OffsetSpec.maxTimestamp()
            : OffsetSpec.forTimestamp(asked);
        long offset =
            admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
        say(offset < 0 ? null : offset);
    }

    private void describeConfigs(Admin admin, ConfigResource resource) throws Exception {
        admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().forEach(
            one -> say(one.name(), one.value(), SOURCES.get(one.source())));
    }

    private void logSizes(Admin admin) throws Exception {
        for (Node node : admin.describeCluster().nodes().get()) {
            for (LogDirDescription directory :
                    admin.describeLogDirs(List.of(node.id())).allDescriptions().get()
                        .get(node.id()).values()) {
                if (directory.error() != null) {
                    throw directory.error();
                }
                directory.replicaInfos().forEach(
                    (partition, replica) ->
                        say(partition.topic(), partition.partition(), replica.size()));
            }
        }
    }

    private static ConfigResource resource(String kind, String name) {
        ConfigResource.Type type =
            kind.equals("topic") ? ConfigResource.Type.TOPIC : ConfigResource.Type.BROKER;
        return new ConfigResource(type, name);
    }

    private static Collection<AlterConfigOp> changes(List<byte[][]> rows) {
        return rows.stream()
            .map(row -> new AlterConfigOp(
                new ConfigEntry(text(row[1]), Optional.ofNullable(row[2]).map(JavaClient::text)
                    .orElse("")),
                AlterConfigOp.OpType.valueOf(text(row[0]))))
            .collect(Collectors.toList());
    }

    private static Map<String, String> pairs(List<byte[][]> rows) {
        Map<String, String> pairs = new HashMap<>();
        rows.forEach(row -> pairs.put(text(row[0]), text(row[1])));
        return pairs;
    }

    private static String ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::idString).collect(Collectors.joining(","));
    }

    /** Adds a row to the answer. */
    private void say(Object... fields) {
        answer.add(fields == null ? new Object[] {null} : fields);
    }

    static String text(byte[] field) {
        return new String(field, StandardCharsets.UTF_8);
    }

    static int number(byte[] field) {
        return Integer.parseInt(text(field));
    }

    private static byte[][] decoded(String line) {
        String[] fields = line.split(" ");
        byte[][] row = new byte[fields.length][];
        for (int index = 0; index < fields.length; index++) {
            String field = fields[index];
            row[index] = field.equals("-") ? null : Base64.getDecoder().decode(field.substring(1));
        }
        return row;
    }

    private static String encoded(Object[] row) {
        List<String> fields = new ArrayList<>();
        for (Object field : row) {
            if (field == null) {
                fields.add("-");
                continue;
            }
            byte[] bytes = field instanceof byte[]
                ? (byte[]) field
                : field.toString().getBytes(StandardCharsets.UTF_8);
            fields.add("=" + Base64.getEncoder().encodeToString(bytes));
        }
        return String.join(" ", fields);
    }
}
