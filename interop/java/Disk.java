import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * What is on a broker's disk, seen by the Java client.
 *
 * <p>{@code java Disk fill NAMESRV LIST ROUND} sends messages to DiskA, DiskB and DiskBatch, which
 * must exist, commits offsets of a group, and appends what the broker answered to the file LIST.
 *
 * <p>{@code java Disk verify NAMESRV LIST OFFSETS} compares all of that with what a broker has: every
 * message by pulling and by its offset id, every key and unique id by query, the bounds of every
 * queue, and, if OFFSETS is true, the committed offsets. The last line is {@code messages N keys N
 * offsets N}; the exit code is 1 if anything differs.
 */
public class Disk {
    private static final String GROUP = "disk_group";
    private static final List<String> TOPICS = List.of("DiskA", "DiskB", "DiskBatch");

    /** One line of the list. */
    private record Sent(
            String topic, int queue, long offset, String offsetId, String uniqId, String tag, List<String> keys, String sha) {
        String place() {
            return topic + "/" + queue + "/" + offset;
        }
    }

    public static void main(String[] args) throws Exception {
        Path list = Path.of(args[2]);
        int code = 1;
        try {
            code = args[0].equals("fill")
                    ? new Fill(args[1], list, args[3]).run()
                    : new Verify(args[1], list, Boolean.parseBoolean(args[3])).run();
        } catch (Exception e) {
            e.printStackTrace();
        }
        System.exit(code); // the client's threads would stay
    }

    private static String sha(byte[] b) throws Exception {
        StringBuilder hex = new StringBuilder();
        for (byte x : MessageDigest.getInstance("SHA-1").digest(b)) {
            hex.append(String.format("%02x", x));
        }
        return hex.toString();
    }

    private static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("disk_producer");
        p.setNamesrvAddr(namesrv);
        p.setVipChannelEnabled(false);
        p.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        p.setSendMsgTimeout(20_000);
        p.start();
        return p;
    }

    private static DefaultMQPullConsumer consumer(String namesrv) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer(GROUP);
        c.setNamesrvAddr(namesrv);
        c.setVipChannelEnabled(false);
        c.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        c.start();
        return c;
    }

    /** Sends. */
    private static final class Fill {
        private final DefaultMQProducer producer;
        private final String namesrv;
        private final Path list;
        private final String round;
        private final List<String> lines = new ArrayList<>();

        Fill(String namesrv, Path list, String round) throws Exception {
            this.namesrv = namesrv;
            this.list = list;
            this.round = round;
            producer = producer(namesrv);
        }

        int run() throws Exception {
            List<MessageQueue> a = new ArrayList<>(new TreeSet<>(producer.fetchPublishMessageQueues("DiskA")));
            for (int i = 0; i < 400; i++) {
                String tag = i % 3 == 0 ? null : i % 3 == 1 ? "TagA" : "Etikett\u00e4\u4e2d";
                String keys = i % 7 == 0 ? null : i % 7 == 1 ? round + "-a" + i + " " + round + "-shared" : round + "-a" + i;
                int size = i % 25 == 24 ? 12_000 : i % 300;
                one(new Message("DiskA", tag, keys, body("a" + i, size)), a.get(i % a.size()));
            }
            MessageQueue b = new ArrayList<>(new TreeSet<>(producer.fetchPublishMessageQueues("DiskB"))).get(0);
            for (int i = 0; i < 700; i++) { // queue files of 100 units roll over
                one(new Message("DiskB", "B", round + "-b" + i, body("b" + i, i % 150)), b);
            }
            List<MessageQueue> c = new ArrayList<>(new TreeSet<>(producer.fetchPublishMessageQueues("DiskBatch")));
            for (int i = 0; i < 12; i++) {
                batch(i, c.get(i % 2));
            }
            Files.write(list, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            commit();
            producer.shutdown();
            return 0;
        }

        private byte[] body(String name, int more) {
            byte[] head = (round + " " + name + " ").getBytes(StandardCharsets.UTF_8);
            byte[] b = java.util.Arrays.copyOf(head, head.length + more);
            for (int i = head.length; i < b.length; i++) {
                b[i] = (byte) (i * 31 % 251);
            }
            return b;
        }

        private void one(Message m, MessageQueue q) throws Exception {
            m.putUserProperty("origin", round);
            byte[] body = m.getBody().clone();
            SendResult r = producer.send(m, q);
            note(r, m, body, r.getQueueOffset(), r.getOffsetMsgId(), r.getMsgId());
        }

        private void batch(int n, MessageQueue q) throws Exception {
            List<Message> ms = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                ms.add(new Message("DiskBatch", "Batch", round + "-c" + n + "-" + i, body("c" + n + "." + i, i * 10)));
            }
            SendResult r = producer.send(ms, q);
            String[] ids = r.getOffsetMsgId().split(",");
            for (int i = 0; i < ms.size(); i++) {
                // 5.x brokers store the batch's unique id in every message of it.
                note(r, ms.get(i), ms.get(i).getBody(), r.getQueueOffset() + i, ids[i], "");
            }
        }

        private void note(SendResult r, Message m, byte[] body, long offset, String offsetId, String uniqId) throws Exception {
            if (r.getSendStatus() != SendStatus.SEND_OK) {
                throw new IllegalStateException(m + ": " + r);
            }
            lines.add(String.join("\t", m.getTopic(), "" + r.getMessageQueue().getQueueId(), "" + offset, offsetId, uniqId,
                    m.getTags() == null ? "" : m.getTags(), m.getKeys() == null ? "" : m.getKeys(), sha(body)));
        }

        /** Commits half of every queue of DiskA for the group. */
        private void commit() throws Exception {
            DefaultMQPullConsumer c = consumer(namesrv);
            for (MessageQueue q : c.fetchSubscribeMessageQueues("DiskA")) {
                c.pull(q, "*", 0, 1); // brokers make the group when it pulls
                c.getDefaultMQPullConsumerImpl().getOffsetStore().updateConsumeOffsetToBroker(q, c.maxOffset(q) / 2, false);
            }
            c.shutdown();
        }
    }

    /** Compares. */
    private static final class Verify {
        private final List<String> faults = new ArrayList<>();
        private final Map<String, Sent> sent = new TreeMap<>();
        private final DefaultMQPullConsumer consumer;
        private final DefaultMQProducer producer;
        private final boolean committed;

        Verify(String namesrv, Path list, boolean committed) throws Exception {
            this.committed = committed;
            for (String line : Files.readAllLines(list)) {
                String[] f = line.split("\t", -1);
                Sent s = new Sent(f[0], Integer.parseInt(f[1]), Long.parseLong(f[2]), f[3], f[4], f[5],
                        f[6].isEmpty() ? List.of() : List.of(f[6].split(" ")), f[7]);
                if (sent.put(s.place(), s) != null) {
                    faults.add("the list has two messages at " + s.place());
                }
            }
            consumer = consumer(namesrv);
            producer = producer(namesrv);
        }

        int run() throws Exception {
            int offsets = 0;
            int messages = 0;
            for (String topic : TOPICS) {
                for (MessageQueue q : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
                    long want = sent.values().stream().filter(s -> s.topic().equals(topic) && s.queue() == q.getQueueId()).count();
                    differ(q + " minimum", 0L, consumer.minOffset(q));
                    differ(q + " maximum", want, consumer.maxOffset(q));
                    offsets += 2;
                    if (committed && topic.equals("DiskA")) {
                        long have = consumer.getDefaultMQPullConsumerImpl().getOffsetStore().readOffset(q, ReadOffsetType.READ_FROM_STORE);
                        differ(q + " committed", want / 2, have);
                        offsets++;
                    }
                    messages += pull(q);
                }
            }
            differ("messages", sent.size(), messages);
            int keys = keys();
            producer.shutdown();
            consumer.shutdown();
            for (String f : faults.subList(0, Math.min(20, faults.size()))) {
                System.out.println("fault: " + f);
            }
            System.out.println("messages " + messages + " keys " + keys + " offsets " + offsets + (faults.isEmpty() ? "" : " faults " + faults.size()));
            return faults.isEmpty() ? 0 : 1;
        }

        private int pull(MessageQueue q) throws Exception {
            int n = 0;
            for (long at = 0; ; ) {
                PullResult r = consumer.pull(q, "*", at, 32, 10_000);
                if (r.getPullStatus() != PullStatus.FOUND) {
                    return n;
                }
                for (MessageExt m : r.getMsgFoundList()) {
                    compare("pull", m, sent.get(q.getTopic() + "/" + q.getQueueId() + "/" + at));
                    at++;
                    n++;
                }
                differ(q + " next offset", at, r.getNextBeginOffset());
            }
        }

        private void compare(String how, MessageExt m, Sent s) throws Exception {
            if (s == null) {
                faults.add(how + ": unknown message " + m);
                return;
            }
            String at = how + " " + s.place() + ": ";
            differ(at + "offset", s.offset(), m.getQueueOffset());
            differ(at + "queue", s.queue(), m.getQueueId());
            differ(at + "body", s.sha(), sha(m.getBody()));
            differ(at + "tag", s.tag(), m.getTags() == null ? "" : m.getTags());
            differ(at + "keys", String.join(" ", s.keys()), m.getKeys() == null ? "" : m.getKeys());
        }

        /** Queries every key, shared ones included, and looks every message up by both its ids. */
        private int keys() throws Exception {
            Map<String, Set<String>> want = new HashMap<>(); // topic and key to places
            for (Sent s : sent.values()) {
                for (String k : s.keys()) {
                    want.computeIfAbsent(s.topic() + "\t" + k, x -> new TreeSet<>()).add(s.place());
                }
                try {
                    compare("by offset id", producer.viewMessage(s.topic(), s.offsetId()), s);
                    if (!s.uniqId().isEmpty()) {
                        compare("by unique id", producer.viewMessage(s.topic(), s.uniqId()), s);
                    }
                } catch (Exception e) {
                    faults.add("by id " + s.place() + ": " + e);
                }
            }
            int found = 0;
            for (Map.Entry<String, Set<String>> e : want.entrySet()) {
                String topic = e.getKey().split("\t")[0];
                String key = e.getKey().split("\t")[1];
                Set<String> got = new TreeSet<>();
                try {
                    QueryResult r = producer.queryMessage(topic, key, 64, 0, Long.MAX_VALUE);
                    for (MessageExt m : r.getMessageList()) {
                        String place = m.getTopic() + "/" + m.getQueueId() + "/" + m.getQueueOffset();
                        compare("by key", m, sent.get(place));
                        got.add(place);
                    }
                } catch (Exception x) {
                    faults.add("key " + key + " of " + topic + ": " + x);
                    continue;
                }
                differ("key " + key + " of " + topic, e.getValue(), got);
                found++;
            }
            return found;
        }

        private void differ(String what, Object want, Object got) {
            if (!want.equals(got)) {
                faults.add(what + ": want " + want + ", got " + got);
            }
        }
    }
}
