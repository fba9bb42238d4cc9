import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;

/**
 * Sends timer messages and recalls some of them: {@code java Timers NAMESRV TOPIC FILE N}.
 *
 * <p>It writes a {@link Record} of each message that is to come to FILE, which must hold as many as the
 * last line says: {@code sent N}. The user property {@code due} says when, in ms. The exit code is 1 if
 * anything failed.
 */
public class Timers {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("timers_producer");
        p.setNamesrvAddr(args[0]);
        p.setVipChannelEnabled(false);
        p.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        p.setSendMsgTimeout(20_000);
        p.start();
        List<Record> sent = new ArrayList<>();
        int faults = 0;
        for (int i = 0; i < Integer.parseInt(args[3]); i++) {
            String id = "timer-" + i;
            Message m = new Message(args[1], "t", id, id.getBytes(StandardCharsets.UTF_8));
            long delay = 2000 + 333L * i;
            long due = System.currentTimeMillis() + delay;
            m.putUserProperty("due", Long.toString(due));
            // As Message.setDelayTimeMs, setDeliverTimeMs and setDelayTimeSec, which 4.9 has not.
            switch (i % 3) {
                case 0 -> MessageAccessor.putProperty(m, "TIMER_DELAY_MS", Long.toString(delay));
                case 1 -> MessageAccessor.putProperty(m, "TIMER_DELIVER_MS", Long.toString(due));
                default -> {
                    m.putUserProperty("due", Long.toString(due - delay % 1000));
                    MessageAccessor.putProperty(m, "TIMER_DELAY_SEC", Long.toString(delay / 1000));
                }
            }
            SendResult r = p.send(m);
            String handle = (String) SendResult.class.getMethod("getRecallHandle").invoke(r);
            if (handle == null) {
                System.out.println("fault: no recall handle for " + id);
                faults++;
            } else if (i % 4 == 3) {
                try {
                    Object recalled = DefaultMQProducer.class
                            .getMethod("recallMessage", String.class, String.class)
                            .invoke(p, args[1], handle);
                    if (!r.getMsgId().equals(recalled)) {
                        System.out.println("fault: recall of " + r.getMsgId() + " gave " + recalled);
                        faults++;
                    }
                    continue;
                } catch (InvocationTargetException e) {
                    System.out.println("fault: recall of " + id + ": " + e.getCause());
                    faults++;
                }
            }
            sent.add(Record.sent("timer", m, r));
        }
        p.shutdown();
        Record.write(args[2], sent);
        System.out.println("sent " + sent.size());
        System.exit(faults == 0 ? 0 : 1);
    }
}
