import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/**
 * What a program knows about a message it has sent or received, as a line that the suite reads:
 * fields encoded like the query of a URL. Properties have the prefix {@code p.}, bodies are shown by
 * length and SHA-256.
 */
final class Record {
    private static final String SHARDING_KEY = "__SHARDINGKEY";

    private final Map<String, String> fields = new LinkedHashMap<>();

    private Record(Message m) {
        set("topic", m.getTopic());
        set("tag", m.getTags());
        set("keys", m.getKeys());
        set("sharding", m.getProperty(SHARDING_KEY));
        byte[] body = m.getBody() == null ? new byte[0] : m.getBody();
        set("size", body.length);
        set("sha", sha(body));
        for (Map.Entry<String, String> p : m.getProperties().entrySet()) {
            set("p." + p.getKey(), p.getValue());
        }
    }

    /** A message that was sent in some mode. There is no result for one-way messages. */
    static Record sent(String mode, Message m, SendResult r) {
        Record rec = new Record(m);
        rec.set("mode", mode);
        rec.set("id", MessageClientIDSetter.getUniqID(m));
        if (r != null) {
            rec.set("id", r.getMsgId());
            rec.set("offsetId", r.getOffsetMsgId());
            rec.set("broker", r.getMessageQueue().getBrokerName());
            rec.set("queue", r.getMessageQueue().getQueueId());
            rec.set("offset", r.getQueueOffset());
            rec.set("status", r.getSendStatus());
        }
        return rec;
    }

    /** The messages of a batch: the result names all their ids, and the first one's offset. */
    static List<Record> batch(String mode, List<Message> ms, SendResult r) {
        String[] ids = r.getMsgId().split(",");
        String[] offsetIds = r.getOffsetMsgId().split(",");
        List<Record> out = new ArrayList<>();
        for (int i = 0; i < ms.size(); i++) {
            Record rec = sent(mode, ms.get(i), r);
            rec.set("id", ids.length == ms.size() ? ids[i] : "not one of " + ids.length);
            rec.set("offsetId", offsetIds.length == ms.size() ? offsetIds[i] : "not one of " + offsetIds.length);
            rec.set("offset", r.getQueueOffset() + i);
            out.add(rec);
        }
        return out;
    }

    static Record received(MessageExt m) {
        Record rec = new Record(m);
        rec.set("id", m.getMsgId());
        if (m instanceof MessageClientExt) {
            rec.set("offsetId", ((MessageClientExt) m).getOffsetMsgId());
        }
        rec.set("broker", m.getBrokerName());
        rec.set("queue", m.getQueueId());
        rec.set("offset", m.getQueueOffset());
        rec.set("attempts", m.getReconsumeTimes());
        rec.set("born", m.getBornTimestamp());
        rec.set("stored", m.getStoreTimestamp());
        rec.set("codec", codec(m.getSysFlag()));
        return rec;
    }

    Record set(String name, Object value) {
        if (value != null) {
            fields.put(name, value.toString());
        }
        return this;
    }

    static void write(String file, List<Record> records) throws IOException {
        List<String> lines = new ArrayList<>();
        for (Record r : records) {
            lines.add(r.line());
        }
        Files.write(Path.of(file), lines);
    }

    String line() {
        StringBuilder line = new StringBuilder();
        for (Map.Entry<String, String> f : fields.entrySet()) {
            line.append(line.length() == 0 ? "" : "&");
            line.append(URLEncoder.encode(f.getKey(), StandardCharsets.UTF_8)).append('=');
            line.append(URLEncoder.encode(f.getValue(), StandardCharsets.UTF_8));
        }
        return line.toString();
    }

    /** How the body was stored. Consumers of 5.x have cleared the flag by now, but not the type. */
    private static String codec(int sysFlag) {
        switch (sysFlag & MessageSysFlag.COMPRESSION_TYPE_COMPARATOR) {
            case MessageSysFlag.COMPRESSION_LZ4_TYPE:
                return "lz4";
            case MessageSysFlag.COMPRESSION_ZSTD_TYPE:
                return "zstd";
            case MessageSysFlag.COMPRESSION_ZLIB_TYPE:
                return "zlib";
            default: // senders from before there were types leave it out
                return (sysFlag & MessageSysFlag.COMPRESSED_FLAG) == 0 ? "none" : "zlib";
        }
    }

    private static String sha(byte[] body) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
