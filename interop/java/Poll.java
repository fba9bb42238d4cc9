import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * As {@link Consume}, with a client that is asked for messages: {@code java Poll NAMESRV GROUP TOPIC}. It
 * commits after each poll.
 */
public class Poll {
    private static volatile boolean ending;

    public static void main(String[] args) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setVipChannelEnabled(false);
        consumer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.subscribe(args[2], "*");
        consumer.start();
        CountDownLatch polled = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending = true;
            try {
                polled.await();
            } catch (InterruptedException e) {
                Runtime.getRuntime().halt(1);
            }
            consumer.shutdown();
            System.out.println("left");
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }));
        System.out.println("ready");
        while (!ending) {
            List<MessageExt> messages = consumer.poll(100);
            for (MessageExt m : messages) {
                Consume.handle(m);
            }
            if (!messages.isEmpty()) {
                consumer.commitSync();
            }
        }
        polled.countDown();
    }
}
