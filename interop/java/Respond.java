import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Answers requests until it is ended: {@code java Respond NAMESRV TOPIC GROUP}. The answer to a
 * request is {@code re: BODY} with the request's keys in the property {@code answers}. It prints
 * {@code ready}, and a line that starts with {@code fault:} for what goes wrong.
 */
public class Respond {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(args[2] + "_producer");
        producer.setNamesrvAddr(args[0]);
        producer.setVipChannelEnabled(false);
        producer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        producer.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setVipChannelEnabled(false);
        consumer.setMqClientApiTimeout(20_000); // a machine that is shared may be slow
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener(
                (MessageListenerConcurrently) (msgs, context) -> {
                    for (MessageExt m : msgs) {
                        try {
                            byte[] body = ("re: " + new String(m.getBody(), StandardCharsets.UTF_8))
                                    .getBytes(StandardCharsets.UTF_8);
                            Message reply = MessageUtil.createReplyMessage(m, body);
                            reply.putUserProperty("answers", m.getKeys());
                            SendResult r = producer.send(reply, 10_000);
                            if (r.getSendStatus() != SendStatus.SEND_OK) {
                                System.out.println("fault: " + m.getKeys() + ": " + r);
                            }
                        } catch (Exception e) {
                            System.out.println("fault: " + m.getKeys() + ": " + e);
                        }
                    }
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
        consumer.start();
        System.out.println("ready");
    }
}
