import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Reads topics with a push consumer: {@code java Receive NAMESRV GROUP FILE N TOPIC...}.
 *
 * <p>It ends when N messages have come and no more follow, or after a minute, and writes a
 * {@link Record} of each delivery to FILE. Those with a sharding key have the field {@code hash}: the
 * queue that Java's selector by hash takes for it. The last line is {@code received N}.
 */
public class Receive {
    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[3]);
        ConcurrentLinkedQueue<MessageExt> arrived = new ConcurrentLinkedQueue<>();

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setVipChannelEnabled(false);
        consumer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        for (int i = 4; i < args.length; i++) {
            consumer.subscribe(args[i], "*");
        }
        consumer.registerMessageListener(
                (MessageListenerConcurrently) (msgs, context) -> {
                    arrived.addAll(msgs);
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
        consumer.start();

        long end = System.currentTimeMillis() + 150_000;
        while (arrived.size() < n && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
        Thread.sleep(300); // room for what must not come: duplicates

        Map<String, List<MessageQueue>> queues = new HashMap<>();
        List<Record> records = new ArrayList<>();
        for (MessageExt m : arrived) {
            Record r = Record.received(m);
            String key = m.getProperty("__SHARDINGKEY");
            if (key != null) {
                List<MessageQueue> list = queues.get(m.getTopic());
                if (list == null) {
                    list = new ArrayList<>(consumer.fetchSubscribeMessageQueues(m.getTopic()));
                    list.sort(null);
                    queues.put(m.getTopic(), list);
                }
                r.set("hash", new SelectMessageQueueByHash().select(list, m, key).getQueueId());
            }
            records.add(r);
        }
        consumer.shutdown();
        Record.write(args[2], records);
        System.out.println("received " + records.size());
        System.exit(0);
    }
}
