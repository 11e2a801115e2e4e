import java.lang.reflect.Method;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** What clients before 3.5 do not have either: other modes, and watches that can be removed. */
public class JavaZooKeeper extends OldJavaZooKeeper {
    public static void main(String[] arguments) throws Exception {
        connect = arguments[0];
        if (Boolean.parseBoolean(arguments[1])) {
            logIn();
        } else {
            modes();
            multis();
            watches();
            persistentWatches();
            rights();
            sessions();
        }
        System.exit(0);
    }

    static void modes() throws Exception {
        Events events = new Events();
        ZooKeeper zk = open(events);
        events.await(Watcher.Event.KeeperState.SyncConnected);
        call("create", () -> zk.create("/modes", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        for (CreateMode mode : CreateMode.values()) {
            long ttl = mode.isTTL() ? 3600000 : -1;
            String path = "/modes/" + mode + "-";
            Stat stat = new Stat();
            call("create " + mode, () -> zk.create(
                    path, mode.name().getBytes(), Ids.OPEN_ACL_UNSAFE, mode, stat, ttl));
            say("stat", shape(stat));
        }
        for (long ttl : new long[] {60000000, (1L << 40) - 1}) {
            String path = "/modes/ttl-" + ttl;
            CreateMode mode = CreateMode.PERSISTENT_WITH_TTL;
            call(path, () -> zk.create(path, null, Ids.OPEN_ACL_UNSAFE, mode, new Stat(), ttl));
            call("exists", () -> zk.exists(path, false));
        }
        children(zk);
        call("below a ttl", () -> zk.create(
                "/modes/PERSISTENT_WITH_TTL-/x", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        changes(zk);
    }

    static void multis() throws Exception {
        multi(
                Op.create("/multi", "a".getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.check("/multi", 0),
                Op.setData("/multi", "b".getBytes(), 0),
                Op.create("/multi/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
                Op.create("/multi/t", null, Ids.OPEN_ACL_UNSAFE,
                        CreateMode.PERSISTENT_WITH_TTL.toFlag(), 5000),
                Op.create("/multi/c", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER),
                Op.delete("/multi/c", -1));
    }

    static void watches() throws Exception {
        Events events = new Events();
        ZooKeeper zk = open(new Events());
        ZooKeeper writer = open(new Events());
        watchAll(zk, writer, events);
        zk.getData("/watched", events, null);
        call("remove", () -> {
            zk.removeWatches("/watched", events, WatcherType.Data, false);
            return "removed";
        });
        events.print(1);
        call("remove again", () -> {
            zk.removeWatches("/watched", events, WatcherType.Data, false);
            return "removed";
        });
        writer.setData("/watched", null, -1);
        zk.exists("/watched", false);
        say("left", events.nodes.size());
        zk.close();
        writer.close();
    }

    /** Those that remain, which clients before 3.6 do not have. */
    static void persistentWatches() throws Exception {
        Class<?> modes;
        try {
            modes = Class.forName("org.apache.zookeeper.AddWatchMode");
        } catch (ClassNotFoundException error) {
            return;
        }
        Method add = ZooKeeper.class.getMethod("addWatch", String.class, Watcher.class, modes);
        ZooKeeper zk = open(new Events());
        ZooKeeper writer = open(new Events());
        for (Object mode : modes.getEnumConstants()) {
            String path = "/" + mode;
            Events events = new Events();
            add.invoke(zk, path, events, mode);
            writer.create(path, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            writer.setData(path, null, -1);
            writer.create(path + "/x", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            writer.setData(path + "/x", null, -1);
            writer.delete(path + "/x", -1);
            writer.delete(path, -1);
            zk.exists(path, false);
            say(mode.toString(), events.nodes.size());
            events.print(events.nodes.size());
            call("remove", () -> {
                zk.removeAllWatches(path, WatcherType.Any, false);
                return "removed";
            });
            events.print(1);
        }
        zk.close();
        writer.close();
    }
}
