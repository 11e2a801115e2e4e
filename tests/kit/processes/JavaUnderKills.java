import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client at work while brokers die, spoken to as JavaClient is: a producer that sends
 * numbers, in turn to each partition, and members of a group that read them, all in threads.
 */
public final class JavaUnderKills {
    private static final int GIVE_UP_MS = 180_000;

    private Sending sending;
    private final Map<String, Member> members = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        JavaClient.answerAll(new JavaUnderKills()::serve);
    }

    private void serve(byte[][] request, List<byte[][]> rows, Consumer<Object[]> say)
            throws Exception {
        String name = request.length > 1 ? JavaClient.text(request[1]) : null;
        switch (JavaClient.text(request[0])) {
            case "begin": // SERVERS TOPIC PARTITIONS
                sending = new Sending(
                    name, JavaClient.text(request[2]), JavaClient.number(request[3]));
                sending.start();
                break;
            case "allow": // COUNT
                sending.allowed = sending.sent + Integer.parseInt(name);
                break;
            case "counts":
                say.accept(new Object[] {
                    sending.sent, sending.acknowledged.size(), sending.failed.size()});
                break;
            case "finish":
                sending.finish();
                sending.failed.forEach(error -> say.accept(new Object[] {error}));
                break;
            case "acknowledged":
                sending.acknowledged.forEach(say);
                break;
            case "join": // NAME SERVERS GROUP TOPIC
                Member member = new Member(
                    JavaClient.text(request[2]),
                    JavaClient.text(request[3]),
                    JavaClient.text(request[4]));
                members.put(name, member);
                member.start();
                break;
            case "read": // NAME: what it has read since it was asked last
                members.get(name).checkIsAlive();
                Object[] row;
                while ((row = members.get(name).read.poll()) != null) {
                    say.accept(row);
                }
                break;
            case "leave": // NAME
                members.get(name).leave();
                break;
            default:
                throw new IllegalArgumentException("no such verb");
        }
    }

    /** An idempotent producer with acks=all. */
    private static final class Sending extends Thread {
        private final String topic;
        private final int partitions;
        private final KafkaProducer<byte[], byte[]> producer;
        volatile int sent = 0;
        volatile int allowed = 0;
        volatile boolean isStopping = false;
        /** Rows of partition, offset, number. */
        final ConcurrentLinkedQueue<Object[]> acknowledged = new ConcurrentLinkedQueue<>();
        final ConcurrentLinkedQueue<Object> failed = new ConcurrentLinkedQueue<>();

        Sending(String servers, String topic, int partitions) {
            this.topic = topic;
            this.partitions = partitions;
            Properties config = JavaClient.settings(servers);
            config.put("acks", "all");
            config.put("enable.idempotence", true);
            // Many small requests, so that one is nearly always on its way when a kill comes.
            config.put("linger.ms", 0);
            config.put("batch.size", 300);
            config.put("delivery.timeout.ms", GIVE_UP_MS);
            config.put("reconnect.backoff.ms", 10);
            config.put("reconnect.backoff.max.ms", 100);
            config.put("retry.backoff.ms", 20);
            ByteArraySerializer bytes = new ByteArraySerializer();
            producer = new KafkaProducer<>(config, bytes, bytes);
            setDaemon(true);
        }

        @Override
        public void run() {
            while (!isStopping) {
                if (sent < allowed) {
                    send(sent);
                    sent++;
                } else {
                    pause(1);
                }
            }
        }

        private void send(int number) {
            int partition = number % partitions;
            byte[] value = Integer.toString(number).getBytes();
            producer.send(
                new ProducerRecord<>(topic, partition, null, value),
                (stored, error) -> {
                    if (error == null) {
                        acknowledged.add(new Object[] {partition, stored.offset(), number});
                    } else {
                        failed.add(error);
                    }
                });
        }

        void finish() throws InterruptedException {
            isStopping = true;
            join();
            producer.flush();
            producer.close();
        }
    }

    /** Reads, and commits what it has read. */
    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private volatile boolean isStopping = false;
        private volatile Throwable failure = null;
        private int assignments = 0;
        /** Rows of: how many assignments it had had, partition, offset, value. */
        final ConcurrentLinkedQueue<Object[]> read = new ConcurrentLinkedQueue<>();

        Member(String servers, String group, String topic) {
            Properties config = JavaClient.settings(servers);
            config.put("group.id", group);
            config.put("enable.auto.commit", false);
            config.put("auto.offset.reset", "earliest");
            config.put("session.timeout.ms", 6000);
            config.put("heartbeat.interval.ms", 300);
            config.put("fetch.max.wait.ms", 100);
            config.put("reconnect.backoff.ms", 10);
            config.put("reconnect.backoff.max.ms", 100);
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            consumer = new KafkaConsumer<>(config, bytes, bytes);
            consumer.subscribe(List.of(topic), this);
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                while (!isStopping) {
                    poll();
                }
                consumer.close();
            } catch (Throwable error) {
                error.printStackTrace();
                failure = error;
            }
        }

        private void poll() {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
            for (ConsumerRecord<byte[], byte[]> one : records) {
                read.add(new Object[] {assignments, one.partition(), one.offset(), one.value()});
            }
            if (records.isEmpty()) {
                return;
            }
            try {
                consumer.commitSync();
            } catch (CommitFailedException | RetriableException error) {
                // Others own it by now, or no broker coordinates: a later commit says the same.
                System.err.println(error);
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assignments++;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        }

        void checkIsAlive() {
            if (failure != null) {
                throw new IllegalStateException(failure);
            }
        }

        void leave() throws InterruptedException {
            isStopping = true;
            join();
            checkIsAlive();
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
