import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends messages in transactions: {@code java Transact NAMESRV TOPIC GROUP N}, N of each kind. The body says
 * what becomes of a message: {@code commit-I}, {@code rollback-I}, {@code later-commit-I} and
 * {@code later-rollback-I}, whose outcome is only told when the broker asks. The last line is
 * {@code sent 4N checked 2N altered 0}.
 */
public class Transact {
    private static final List<String> FAULTS = Collections.synchronizedList(new ArrayList<>());
    private static final Set<String> SENT = ConcurrentHashMap.newKeySet();
    private static final Set<String> CHECKED = ConcurrentHashMap.newKeySet();

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[3]);
        TransactionMQProducer p = new TransactionMQProducer(args[2]);
        p.setNamesrvAddr(args[0]);
        p.setVipChannelEnabled(false);
        p.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        p.setSendMsgTimeout(10_000);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                if (!m.getTransactionId().equals(m.getUserProperty("UNIQ_KEY"))) {
                    FAULTS.add(body(m) + " has transaction id " + m.getTransactionId());
                }
                SENT.add(m.getTransactionId() + " " + body(m));
                return body(m).startsWith("later") ? LocalTransactionState.UNKNOW : outcome(body(m));
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                if (!SENT.contains(m.getTransactionId() + " " + body(m)) || !m.getTopic().equals(args[1])) {
                    FAULTS.add("check of " + m.getTopic() + " " + m.getTransactionId() + " " + body(m));
                }
                if (body(m).startsWith("later")) {
                    CHECKED.add(body(m));
                }
                return outcome(body(m));
            }
        });
        p.start();
        int sent = 0;
        for (String kind : new String[] {"commit", "rollback", "later-commit", "later-rollback"}) {
            for (int i = 0; i < n; i++) {
                Message m = new Message(args[1], "tag", kind + "-" + i, (kind + "-" + i).getBytes(StandardCharsets.UTF_8));
                TransactionSendResult r = p.sendMessageInTransaction(m, null);
                LocalTransactionState want = kind.startsWith("later") ? LocalTransactionState.UNKNOW : outcome(kind);
                if (r.getLocalTransactionState() != want) {
                    FAULTS.add(kind + "-" + i + ": " + r);
                }
                sent++;
            }
        }
        for (long end = System.currentTimeMillis() + 150_000; CHECKED.size() < 2 * n && System.currentTimeMillis() < end; ) {
            Thread.sleep(50);
        }
        Thread.sleep(2_000); // the answers are on their way
        p.shutdown();
        for (String f : FAULTS.subList(0, Math.min(20, FAULTS.size()))) {
            System.out.println("fault: " + f);
        }
        System.out.println("sent " + sent + " checked " + CHECKED.size() + " altered " + FAULTS.size());
        System.exit(FAULTS.isEmpty() ? 0 : 1);
    }

    private static LocalTransactionState outcome(String body) {
        return body.contains("commit") ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
    }

    private static String body(Message m) {
        return new String(m.getBody(), StandardCharsets.UTF_8);
    }
}
