import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Sends in every way the Java client has: {@code java Send NAMESRV TOPIC FILE}.
 *
 * <p>It writes a {@link Record} of each message to FILE, which must hold as many as the last line says:
 * {@code sent N}. The exit code is 1 if a send failed.
 */
public class Send {
    private static final int SYNC = 100;
    private static final int ASYNC = 300;
    private static final int ONEWAY = 100;
    private static final int BATCH = 100;
    private static final int SELECTED = 60;
    private static final int COMPRESSED = 3;

    private static final List<Record> SENT = Collections.synchronizedList(new ArrayList<>());
    private static final List<String> FAULTS = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        DefaultMQProducer p = producer(args[0], "plain", null);
        for (int i = 0; i < SYNC; i++) {
            Message m = message(topic, "sync", i);
            SENT.add(Record.sent("sync", m, p.send(m)));
        }
        async(p, topic);
        for (int i = 0; i < ONEWAY; i++) {
            Message m = message(topic, "oneway", i);
            p.sendOneway(m);
            SENT.add(Record.sent("oneway", m, null));
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < BATCH; i++) {
            batch.add(message(topic, "batch", i));
        }
        SENT.addAll(Record.batch("batch", batch, p.send(batch)));
        selected(p, topic);
        p.shutdown();
        for (String codec : new String[] {"ZLIB", "LZ4", "ZSTD"}) {
            compressed(args[0], topic, codec);
        }

        for (String f : FAULTS.subList(0, Math.min(20, FAULTS.size()))) {
            System.out.println("fault: " + f);
        }
        Record.write(args[2], SENT);
        System.out.println("sent " + SENT.size());
        System.exit(FAULTS.isEmpty() ? 0 : 1);
    }

    private static void async(DefaultMQProducer p, String topic) throws Exception {
        CountDownLatch done = new CountDownLatch(ASYNC);
        for (int i = 0; i < ASYNC; i++) {
            Message m = message(topic, "async", i);
            p.send(m, new SendCallback() {
                @Override
                public void onSuccess(SendResult r) {
                    SENT.add(Record.sent("async", m, r));
                    done.countDown();
                }

                @Override
                public void onException(Throwable e) {
                    FAULTS.add(m.getKeys() + ": " + e);
                    done.countDown();
                }
            });
        }
        if (!done.await(30, TimeUnit.SECONDS)) {
            FAULTS.add(done.getCount() + " asynchronous sends without a callback");
        }
    }

    /** By hash, by a function, and to a queue. Records have the queue that must be taken. */
    private static void selected(DefaultMQProducer p, String topic) throws Exception {
        List<MessageQueue> queues = p.fetchPublishMessageQueues(topic);
        for (int i = 0; i < SELECTED; i++) {
            Message m = message(topic, "hash", i);
            String key = "account " + i;
            m.putUserProperty("account", key); // for the other side to hash
            SENT.add(Record.sent("hash", m, p.send(m, new SelectMessageQueueByHash(), key)));

            m = message(topic, "function", i);
            SendResult r = p.send(m, (list, msg, n) -> list.get((Integer) n % list.size()), i);
            SENT.add(Record.sent("function", m, r));
            if (r.getMessageQueue().getQueueId() != i % queues.size()) {
                FAULTS.add("function " + i + ": went to " + r.getMessageQueue());
            }

            m = message(topic, "queue", i);
            r = p.send(m, queues.get(i % queues.size()));
            SENT.add(Record.sent("queue", m, r));
            if (!r.getMessageQueue().equals(queues.get(i % queues.size()))) {
                FAULTS.add("queue " + i + ": went to " + r.getMessageQueue());
            }
        }
    }

    private static void compressed(String namesrv, String topic, String codec) throws Exception {
        System.setProperty("rocketmq.message.compressType", codec); // read by new producers of every version
        byte[] magic = codec.equals("ZLIB") ? new byte[] {0x78}
                : codec.equals("LZ4") ? new byte[] {4, 0x22, 0x4d, 0x18}
                : new byte[] {0x28, (byte) 0xb5, 0x2f, (byte) 0xfd};
        int[] seen = {0};
        DefaultMQProducer p = producer(namesrv, codec.toLowerCase(), new RPCHook() {
            @Override
            public void doBeforeRequest(String addr, RemotingCommand request) {
                byte[] body = request.getBody();
                boolean same = body != null && body.length > magic.length && body.length < 4000;
                for (int i = 0; same && i < magic.length; i++) {
                    same = body[i] == magic[i];
                }
                seen[0] += same ? 1 : 0;
            }

            @Override
            public void doAfterResponse(String addr, RemotingCommand request, RemotingCommand response) {}
        });
        for (int i = 0; i < COMPRESSED; i++) {
            String mode = codec.toLowerCase();
            Message m = message(topic, mode, i);
            byte[] body = text(20_000 * (i + 1));
            m.setBody(body);
            SendResult r = p.send(m);
            m.setBody(body); // the client has put the compressed one there in some versions
            SENT.add(Record.sent(mode, m, r));
        }
        p.shutdown();
        if (seen[0] != COMPRESSED) {
            FAULTS.add(codec + ": " + seen[0] + " bodies were compressed so, want " + COMPRESSED);
        }
    }

    private static DefaultMQProducer producer(String namesrv, String name, RPCHook hook) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("java_send", hook);
        p.setNamesrvAddr(namesrv);
        p.setInstanceName("send-" + name); // else they share a connection, and the first one's hook
        p.setVipChannelEnabled(false);
        p.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        p.setSendMsgTimeout(10_000);
        p.start();
        return p;
    }

    private static Message message(String topic, String mode, int i) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes((mode + " " + i + " ").getBytes(StandardCharsets.UTF_8));
        for (int j = 0; j < i % 700; j++) {
            body.write(i + j);
        }
        Message m = new Message(topic, "t" + i % 3, body.toByteArray());
        m.setKeys(List.of(mode + "-" + i, "order" + i));
        m.putUserProperty("origin", "java " + mode);
        m.putUserProperty("gr\u00fc\u00dfe", "\u4f60\u597d \ud83d\ude80 " + i);
        if (i % 4 == 0) {
            m.putUserProperty("__SHARDINGKEY", "sh\u00e4rd " + i);
        }
        return m;
    }

    private static byte[] text(int n) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; b.length() < n; i++) {
            b.append("all work and no play ").append(i % 10);
        }
        return b.toString().getBytes(StandardCharsets.UTF_8);
    }
}
