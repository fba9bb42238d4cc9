import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A member of a group until it is told to end: {@code java Consume NAMESRV GROUP TOPIC HOW RETRIES}.
 * HOW is {@code concurrently}, {@code orderly} or {@code pop} (which the broker must have
 * been told, too), RETRIES the client's maximum, -1 for its default.
 *
 * <p>Messages say what is to become of them. {@code work} is how many milliseconds the handler takes,
 * {@code fail} how many attempts fail, {@code level} the delay level of the next one, and those with
 * {@code dead} are dead letters at once. After each call there is a line {@code call} with a {@link
 * Record} that has begin and end, in microseconds, and whether it failed. The first line is {@code
 * ready}, and the last one {@code left}, when the consumer was closed.
 */
public class Consume {
    public static void main(String[] args) throws Exception {
        for (int attempt = 1; ; attempt++) {
            DefaultMQPushConsumer consumer = consumer(args);
            try {
                consumer.start();
                System.out.println("ready");
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    consumer.shutdown();
                    System.out.println("left");
                    System.out.flush();
                    Runtime.getRuntime().halt(0);
                }));
                return;
            } catch (IllegalStateException e) { // a call has timed out; the client's threads live on
                e.printStackTrace();
                consumer.shutdown();
                if (attempt == 5) {
                    System.exit(1);
                }
            }
        }
    }

    private static DefaultMQPushConsumer consumer(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setVipChannelEnabled(false);
        consumer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMaxReconsumeTimes(Integer.parseInt(args[4]));
        consumer.setAwaitTerminationMillisWhenShutdown(5_000);
        if (args[3].equals("pop")) {
            // Not known to 4.9: the broker says who consumes what, and how.
            consumer.getClass().getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        }
        consumer.subscribe(args[2], "*");
        if (args[3].equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
                boolean failed = false;
                for (MessageExt m : msgs) { // one, unless the client is told otherwise
                    failed |= handle(m);
                }
                return failed ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
                boolean failed = false;
                for (MessageExt m : msgs) {
                    failed |= handle(m);
                    context.setDelayLevelWhenNextConsume(number(m, "dead") > 0 ? -1 : number(m, "level"));
                }
                return failed ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        return consumer;
    }

    /** Takes a message and says whether it failed. */
    static boolean handle(MessageExt m) {
        Record r = Record.received(m).set("begin", micros());
        boolean failed = number(m, "dead") > 0 || m.getReconsumeTimes() < number(m, "fail");
        try {
            Thread.sleep(number(m, "work"));
        } catch (InterruptedException e) {
            failed = true;
        }
        System.out.println("call " + r.set("failed", failed).set("end", micros()).line());
        return failed;
    }

    private static int number(MessageExt m, String property) {
        String v = m.getProperty(property);
        return v == null ? 0 : Integer.parseInt(v);
    }

    private static long micros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
