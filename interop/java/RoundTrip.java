import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * The Java client's round trip: {@code java RoundTrip NAMESRV TOPIC GROUP N}.
 *
 * <p>A push consumer subscribed to {@code a || b} starts first, a producer then sends N messages
 * with tag a or b, and one with tag c for every ten that nobody may receive. Every message that
 * arrives is compared with what was sent: body, tag, keys, a user property, the unique id, the
 * offset message id, queue and offset. The last line is
 * {@code sent N received N missing 0 duplicates 0 altered 0}; the exit code is 1 if anything is
 * missing, altered or comes unasked.
 */
public class RoundTrip {
    /** What is known about a message once the broker has stored it. */
    private record Sent(SendResult result, byte[] body, String tag) {}

    public static void main(String[] args) throws Exception {
        String namesrv = args[0];
        String topic = args[1];
        String group = args[2];
        int n = Integer.parseInt(args[3]);

        Map<String, MessageExt> arrived = new ConcurrentHashMap<>(); // by key
        AtomicInteger total = new AtomicInteger();

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "a || b");
        consumer.registerMessageListener(
                (MessageListenerConcurrently) (msgs, context) -> {
                    for (MessageExt m : msgs) {
                        arrived.putIfAbsent(m.getKeys(), m);
                        total.incrementAndGet();
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });

        DefaultMQProducer producer = new DefaultMQProducer(group + "_producer");
        producer.setNamesrvAddr(namesrv);
        producer.setVipChannelEnabled(false);
        producer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        producer.setSendMsgTimeout(10_000);
        producer.start();
        consumer.start();

        Map<String, Sent> sent = new HashMap<>();
        List<String> faults = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            if (i % 10 == 0) { // must be filtered out
                send(producer, topic, "c", "other-" + i, body(i), faults);
            }
            String key = "key-" + i;
            String tag = i % 2 == 0 ? "a" : "b";
            byte[] body = body(i);
            SendResult r = send(producer, topic, tag, key, body, faults);
            sent.put(key, new Sent(r, body, tag));
        }

        long end = System.currentTimeMillis() + 150_000;
        while (arrived.size() < n && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
        Thread.sleep(200); // room for what must not come: duplicates, filtered tags
        consumer.shutdown(); // commits the offsets
        producer.shutdown();

        int missing = 0;
        Set<String> places = new HashSet<>();
        for (Map.Entry<String, Sent> e : sent.entrySet()) {
            MessageExt m = arrived.remove(e.getKey());
            if (m == null) {
                missing++;
                continue;
            }
            check(e.getKey(), e.getValue(), m, faults);
            if (!places.add(m.getQueueId() + "/" + m.getQueueOffset())) {
                faults.add(e.getKey() + ": a second message at queue/offset " + m.getQueueId() + "/" + m.getQueueOffset());
            }
        }
        for (String key : arrived.keySet()) {
            faults.add(key + ": received but never asked for");
        }
        int received = n - missing;
        int duplicates = total.get() - received - arrived.size();
        for (String f : faults.subList(0, Math.min(20, faults.size()))) {
            System.out.println("fault: " + f);
        }
        System.out.println("sent " + n + " received " + received + " missing " + missing
                + " duplicates " + duplicates + " altered " + faults.size());
        System.exit(missing == 0 && faults.isEmpty() ? 0 : 1);
    }

    /** Bodies differ in length and hold every byte value. */
    private static byte[] body(int i) {
        byte[] head = ("message " + i + " ").getBytes(StandardCharsets.UTF_8);
        byte[] b = new byte[head.length + i % 700];
        System.arraycopy(head, 0, b, 0, head.length);
        for (int j = head.length; j < b.length; j++) {
            b[j] = (byte) (i + j);
        }
        return b;
    }

    private static SendResult send(
            DefaultMQProducer p, String topic, String tag, String key, byte[] body, List<String> faults) throws Exception {
        Message m = new Message(topic, tag, key, body);
        m.putUserProperty("origin", "java " + key);
        SendResult r = p.send(m);
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            faults.add(key + ": send status " + r.getSendStatus());
        }
        if (!r.getMsgId().equals(MessageClientIDSetter.getUniqID(m))) {
            faults.add(key + ": send result has id " + r.getMsgId() + ", message has " + MessageClientIDSetter.getUniqID(m));
        }
        return r;
    }

    private static void check(String key, Sent s, MessageExt m, List<String> faults) {
        SendResult r = s.result();
        if (!Arrays.equals(s.body(), m.getBody())) {
            faults.add(key + ": body of " + s.body().length + " bytes sent, another of " + m.getBody().length + " received");
        }
        differ(faults, key, "tag", s.tag(), m.getTags());
        differ(faults, key, "property", "java " + key, m.getUserProperty("origin"));
        differ(faults, key, "topic", r.getMessageQueue().getTopic(), m.getTopic());
        differ(faults, key, "unique id", r.getMsgId(), MessageClientIDSetter.getUniqID(m));
        differ(faults, key, "message id", r.getMsgId(), m.getMsgId());
        differ(faults, key, "broker", r.getMessageQueue().getBrokerName(), m.getBrokerName());
        differ(faults, key, "queue", r.getMessageQueue().getQueueId(), m.getQueueId());
        differ(faults, key, "offset", r.getQueueOffset(), m.getQueueOffset());
        differ(faults, key, "attempts", 0, m.getReconsumeTimes());
        if (!r.getOffsetMsgId().equals(offsetId(m))) {
            faults.add(key + ": offset id sent " + r.getOffsetMsgId() + ", received " + offsetId(m));
        }
        if (m.getBornTimestamp() <= 0 || m.getStoreTimestamp() < m.getBornTimestamp() - 1000) {
            faults.add(key + ": born at " + m.getBornTimestamp() + ", stored at " + m.getStoreTimestamp());
        }
    }

    /** The id that names the stored copy: store host and position in the log. */
    private static String offsetId(MessageExt m) {
        java.net.InetSocketAddress host = (java.net.InetSocketAddress) m.getStoreHost();
        StringBuilder b = new StringBuilder();
        for (byte x : host.getAddress().getAddress()) {
            b.append(String.format("%02X", x));
        }
        return b.append(String.format("%08X%016X", host.getPort(), m.getCommitLogOffset())).toString();
    }

    private static void differ(List<String> faults, String key, String what, Object want, Object got) {
        if (!want.equals(got)) {
            faults.add(key + ": " + what + " sent " + want + ", received " + got);
        }
    }
}
