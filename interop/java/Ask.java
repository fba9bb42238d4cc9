import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.common.message.Message;

/**
 * Makes requests: {@code java Ask NAMESRV TOPIC N EMPTY HOW}, N one after the other and N at once. The
 * answers must be those of {@link Respond}. EMPTY more have the tag {@code empty}: theirs must have no
 * body. HOW is {@code sync} or {@code callback}: what those one after the other use. The last line is
 * {@code asked N answered N altered 0}.
 */
public class Ask {
    private static final long TIMEOUT = 15_000;
    private static final List<String> FAULTS = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[2]);
        int empty = Integer.parseInt(args[3]);
        DefaultMQProducer p = new DefaultMQProducer("java_ask");
        p.setNamesrvAddr(args[0]);
        p.setVipChannelEnabled(false);
        p.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        p.setSendMsgTimeout(10_000);
        p.start();

        int answered = 0;
        for (int i = 0; i < n + empty; i++) {
            Message m = message(args[1], i < n ? "sync" : "empty", i);
            try {
                Message reply = args[4].equals("sync") ? p.request(m, TIMEOUT) : request(p, m);
                check(m, reply);
                answered++;
            } catch (Exception e) {
                FAULTS.add(m.getKeys() + ": " + e);
            }
        }
        Set<String> replied = ConcurrentHashMap.newKeySet();
        CountDownLatch done = new CountDownLatch(n);
        for (int i = 0; i < n; i++) {
            Message m = message(args[1], "async", i);
            p.request(m, new RequestCallback() {
                @Override
                public void onSuccess(Message reply) {
                    if (reply != null && replied.add(m.getKeys())) { // as above; the answer may have been quicker
                        check(m, reply);
                        done.countDown();
                    }
                }

                @Override
                public void onException(Throwable e) {
                    FAULTS.add(m.getKeys() + ": " + e);
                    done.countDown();
                }
            }, TIMEOUT);
        }
        if (!done.await(2 * TIMEOUT, TimeUnit.MILLISECONDS)) {
            FAULTS.add(done.getCount() + " requests without a callback");
        }
        Thread.sleep(300); // the client acknowledges an answer after it has handed it out
        p.shutdown();

        for (String f : FAULTS.subList(0, Math.min(20, FAULTS.size()))) {
            System.out.println("fault: " + f);
        }
        answered += replied.size();
        System.out.println("asked " + (2 * n + empty) + " answered " + answered + " altered " + FAULTS.size());
        System.exit(FAULTS.isEmpty() ? 0 : 1);
    }

    /** Makes a request with a callback and waits for it. */
    private static Message request(DefaultMQProducer p, Message m) throws Exception {
        CompletableFuture<Message> answer = new CompletableFuture<>();
        p.request(m, new RequestCallback() {
            @Override
            public void onSuccess(Message reply) {
                if (reply != null) { // Apache calls this when the request was sent, too
                    answer.complete(reply);
                }
            }

            @Override
            public void onException(Throwable e) {
                answer.completeExceptionally(e);
            }
        }, TIMEOUT);
        return answer.get(2 * TIMEOUT, TimeUnit.MILLISECONDS);
    }

    private static Message message(String topic, String tag, int i) {
        String key = "java-" + tag + "-" + i;
        Message m = new Message(topic, tag, key, ("\u00bfquestion " + key + "?").getBytes(StandardCharsets.UTF_8));
        m.putUserProperty("origin", "java");
        return m;
    }

    private static void check(Message m, Message reply) {
        if (reply == null) { // what the client makes of an unknown failure
            FAULTS.add(m.getKeys() + ": no answer");
            return;
        }
        String body = reply.getBody() == null ? "" : new String(reply.getBody(), StandardCharsets.UTF_8);
        String want = m.getTags().equals("empty") ? "" : "re: " + new String(m.getBody(), StandardCharsets.UTF_8);
        if (!body.equals(want)) {
            FAULTS.add(m.getKeys() + ": answer \"" + body + "\", want \"" + want + "\"");
        }
        if (!m.getKeys().equals(reply.getProperty("answers"))) {
            FAULTS.add(m.getKeys() + ": the answer is for " + reply.getProperty("answers"));
        }
        String id = m.getProperty("CORRELATION_ID");
        if (id == null || !id.equals(reply.getProperty("CORRELATION_ID"))) {
            FAULTS.add(m.getKeys() + ": correlation id " + id + ", the answer has " + reply.getProperty("CORRELATION_ID"));
        }
    }
}
