import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client as a transactional one, spoken to as JavaClient is. What it holds between two
 * requests has a name that the test gives: a producer, and a member of a group that reads for it.
 */
public final class JavaTransactions {
    private static final long TIMEOUT_SECONDS = 90;
    private static final Duration TIMEOUT = Duration.ofSeconds(TIMEOUT_SECONDS);
    private static final Duration POLL = Duration.ofMillis(100);

    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> members = new HashMap<>();
    /** What each member has read, and its metadata at that moment. */
    private final Map<String, Map<TopicPartition, OffsetAndMetadata>> positions = new HashMap<>();
    private final Map<String, ConsumerGroupMetadata> generations = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        JavaClient.answerAll(new JavaTransactions()::serve);
    }

    private void serve(byte[][] request, List<byte[][]> rows, Consumer<Object[]> say)
            throws Exception {
        String servers = JavaClient.text(request[1]);
        String name = JavaClient.text(request[2]);
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        switch (JavaClient.text(request[0])) {
            case "init":
                init(servers, name, JavaClient.text(request[3]), JavaClient.number(request[4]));
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "send":
                send(producer, JavaClient.text(request[3]), rows);
                break;
            case "read":
                read(servers, name, request, say);
                break;
            case "send_offsets":
                producer.sendOffsetsToTransaction(positions.get(name), generations.get(name));
                break;
            case "commit":
                producer.commitTransaction();
                break;
            case "abort":
                producer.abortTransaction();
                break;
            case "end":
                end(name);
                break;
            case "committed":
                committed(servers, name, say);
                break;
            default:
                throw new IllegalArgumentException("no such verb");
        }
    }

    private void init(String servers, String name, String transactionalId, int timeoutMs) {
        Properties config = JavaClient.settings(servers);
        config.put("transactional.id", transactionalId);
        config.put("transaction.timeout.ms", timeoutMs);
        config.put("max.block.ms", TIMEOUT_SECONDS * 1000);
        ByteArraySerializer bytes = new ByteArraySerializer();
        producers.put(name, new KafkaProducer<>(config, bytes, bytes));
        producers.get(name).initTransactions();
    }

    /** A row is: partition, value. */
    private void send(KafkaProducer<byte[], byte[]> producer, String topic, List<byte[][]> rows)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (byte[][] row : rows) {
            int partition = JavaClient.number(row[0]);
            sent.add(producer.send(new ProducerRecord<>(topic, partition, null, row[1])));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** Joins a group, once, and reads until so many records are there. */
    private void read(String servers, String name, byte[][] request, Consumer<Object[]> say) {
        String topic = JavaClient.text(request[4]);
        int count = JavaClient.number(request[5]);
        Properties config = reader(servers);
        config.put("group.id", JavaClient.text(request[3]));
        config.put("max.poll.interval.ms", JavaClient.number(request[6]));
        config.put("session.timeout.ms", 6000);
        KafkaConsumer<byte[], byte[]> member =
            members.computeIfAbsent(name, any -> subscribed(config, topic));
        long endsAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        Map<TopicPartition, OffsetAndMetadata> position = new HashMap<>();
        for (int seen = 0; seen < count && System.nanoTime() < endsAt; ) {
            for (ConsumerRecord<byte[], byte[]> one : member.poll(POLL)) {
                seen++;
                say.accept(new Object[] {one.value()});
                position.put(
                    new TopicPartition(topic, one.partition()),
                    new OffsetAndMetadata(one.offset() + 1, "by the transaction"));
            }
        }
        positions.put(name, position);
        generations.put(name, member.groupMetadata());
    }

    private static KafkaConsumer<byte[], byte[]> subscribed(Properties config, String topic) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        KafkaConsumer<byte[], byte[]> member = new KafkaConsumer<>(config, bytes, bytes);
        member.subscribe(List.of(topic));
        return member;
    }

    private static Properties reader(String servers) {
        Properties config = JavaClient.settings(servers);
        config.put("isolation.level", "read_committed");
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest");
        config.put("fetch.max.wait.ms", 100);
        return config;
    }

    /** All values of a topic up to its last stable offsets, in the order of their partitions. */
    private static void committed(String servers, String topic, Consumer<Object[]> say) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(reader(servers), bytes, bytes)) {
            for (PartitionInfo info : consumer.partitionsFor(topic)) {
                TopicPartition partition = new TopicPartition(topic, info.partition());
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                long end = consumer.endOffsets(List.of(partition), TIMEOUT).get(partition);
                long endsAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
                while (consumer.position(partition) < end && System.nanoTime() < endsAt) {
                    for (ConsumerRecord<byte[], byte[]> one : consumer.poll(POLL)) {
                        say.accept(new Object[] {one.partition(), one.value()});
                    }
                }
            }
        }
    }

    private void end(String name) {
        KafkaConsumer<byte[], byte[]> member = members.remove(name);
        if (member != null) {
            member.close();
        }
        KafkaProducer<byte[], byte[]> producer = producers.remove(name);
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
    }
}
