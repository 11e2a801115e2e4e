import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * ZooKeeper's own client uses what the protocol offers, and prints each result in a line. Numbers of
 * sessions and transactions and times are not printed, so two servers give the same lines. This
 * program is one for clients of 3.4.
 *
 * Arguments: where the server is, and whether the client logs in (a file of JAAS is set then).
 */
public class OldJavaZooKeeper {
    static final int TIMEOUT_MS = 20000;
    static final long PATIENCE_S = 60;

    static String connect;

    /** Keeps the events of its watches. */
    static class Events implements Watcher {
        final BlockingQueue<WatchedEvent> nodes = new LinkedBlockingQueue<>();
        final BlockingQueue<WatchedEvent> states = new LinkedBlockingQueue<>();

        public void process(WatchedEvent event) {
            (event.getPath() == null ? states : nodes).add(event);
        }

        void print(int count) throws Exception {
            for (int i = 0; i < count; i++) {
                WatchedEvent event = nodes.poll(PATIENCE_S, TimeUnit.SECONDS);
                say("event", event == null ? "none" : event.getType() + " " + event.getPath());
            }
        }

        void await(Event.KeeperState state) throws Exception {
            WatchedEvent event;
            do {
                event = states.poll(PATIENCE_S, TimeUnit.SECONDS);
            } while (event != null && event.getState() != state);
            say("state", event == null ? "none" : event.getState());
        }
    }

    public static void main(String[] arguments) throws Exception {
        connect = arguments[0];
        if (Boolean.parseBoolean(arguments[1])) {
            logIn();
        } else {
            oldModes();
            oldMultis();
            oldWatches();
            rights();
            sessions();
        }
        System.exit(0);
    }

    static void say(String what, Object result) {
        System.out.println(what + ": " + result);
    }

    /** Prints the result, or the error code. */
    static void call(String what, Callable<Object> step) throws Exception {
        try {
            Object result = step.call();
            say(what, result instanceof Stat ? shape((Stat) result) : result);
        } catch (KeeperException error) {
            say(what, error.code() + " " + error.getPath());
        }
    }

    static String shape(Stat stat) {
        return Arrays.asList(
                stat.getVersion(), stat.getCversion(), stat.getAversion(), stat.getDataLength(),
                stat.getNumChildren(), stat.getEphemeralOwner() == 0,
                stat.getEphemeralOwner() < 0 ? stat.getEphemeralOwner() : 0).toString();
    }

    static ZooKeeper open(Events events) throws Exception {
        return open(events, false);
    }

    static ZooKeeper open(Events events, boolean loggedIn) throws Exception {
        System.setProperty("zookeeper.sasl.client", String.valueOf(loggedIn));
        return new ZooKeeper(connect, TIMEOUT_MS, events);
    }

    static void oldModes() throws Exception {
        Events events = new Events();
        ZooKeeper zk = open(events);
        events.await(Watcher.Event.KeeperState.SyncConnected);
        call("create", () -> zk.create("/modes", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        for (CreateMode mode : CreateMode.values()) {
            String path = "/modes/" + mode + "-";
            call("create " + mode,
                    () -> zk.create(path, mode.name().getBytes(), Ids.OPEN_ACL_UNSAFE, mode));
        }
        for (String child : children(zk)) {
            call("exists", () -> zk.exists("/modes/" + child, false));
        }
        call("again", () -> zk.create("/modes", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        call("without a parent",
                () -> zk.create("/none/x", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        call("without rights",
                () -> zk.create("/x", null, new ArrayList<>(), CreateMode.PERSISTENT));
        call("get nothing", () -> zk.getData("/none", false, new Stat()));
        changes(zk);
    }

    static List<String> children(ZooKeeper zk) throws Exception {
        List<String> children = zk.getChildren("/modes", false);
        Collections.sort(children);
        say("children", children);
        call("count", () -> zk.getChildren("/modes", false, new Stat()).size());
        call("below an ephemeral", () -> zk.create(
                "/modes/EPHEMERAL-/x", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        return children;
    }

    /** The node is changed, and the session ends. */
    static void changes(ZooKeeper zk) throws Exception {
        call("set", () -> zk.setData("/modes", "data".getBytes(), 0));
        call("bad version", () -> zk.setData("/modes", "data".getBytes(), 0));
        call("get", () -> new String(zk.getData("/modes", false, new Stat())));
        call("not empty", () -> {
            zk.delete("/modes", -1);
            return "deleted";
        });
        CountDownLatch synced = new CountDownLatch(1);
        zk.sync("/modes", (code, path, context) -> {
            say("sync", KeeperException.Code.get(code) + " " + path);
            synced.countDown();
        }, null);
        synced.await();
        zk.close();
        ZooKeeper other = open(new Events());
        call("ephemeral after the end", () -> other.exists("/modes/EPHEMERAL-", false));
        other.close();
    }

    static void oldMultis() throws Exception {
        multi(
                Op.create("/multi", "a".getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.check("/multi", 0),
                Op.setData("/multi", "b".getBytes(), 0),
                Op.create("/multi/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
                Op.create("/multi/d", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.delete("/multi/d", -1));
    }

    /** One that passes, and one that fails. */
    static void multi(Op... passing) throws Exception {
        ZooKeeper zk = open(new Events());
        for (OpResult result : zk.multi(Arrays.asList(passing))) {
            say("multi", result.getType() + " " + created(result));
        }
        failingMulti(zk);
        zk.close();
    }

    static void failingMulti(ZooKeeper zk) throws Exception {
        List<Op> failing = Arrays.asList(
                Op.setData("/multi", "c".getBytes(), -1),
                Op.delete("/none", -1),
                Op.check("/multi", -1));
        try {
            zk.multi(failing);
        } catch (KeeperException error) {
            say("multi", error.code() + " " + error.getPath());
            for (OpResult result : error.getResults()) {
                say("multi", ((OpResult.ErrorResult) result).getErr());
            }
        }
        call("unchanged", () -> new String(zk.getData("/multi", false, null)));
    }

    static Object created(OpResult result) {
        return result instanceof OpResult.CreateResult
                ? ((OpResult.CreateResult) result).getPath() : "";
    }

    static void oldWatches() throws Exception {
        Events events = new Events();
        ZooKeeper zk = open(new Events());
        ZooKeeper writer = open(new Events());
        watchAll(zk, writer, events);
        zk.close();
        writer.close();
    }

    /** Each kind of watch is set and fires. */
    static void watchAll(ZooKeeper zk, ZooKeeper writer, Events events) throws Exception {
        zk.exists("/watched", events);
        writer.create("/watched", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        events.print(1);
        zk.getData("/watched", events, null);
        zk.getChildren("/watched", events);
        writer.setData("/watched", null, -1);
        writer.create("/watched/x", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        events.print(2);
        zk.getChildren("/watched/x", events);
        zk.getData("/watched/x", events, null);
        writer.delete("/watched/x", -1);
        events.print(1);
    }

    static void rights() throws Exception {
        ZooKeeper owner = open(new Events());
        ZooKeeper other = open(new Events());
        owner.addAuthInfo("digest", "user:secret".getBytes());
        call("create", () -> owner.create(
                "/own", "x".getBytes(), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
        call("acl", () -> owner.getACL("/own", new Stat()));
        call("acl of another", () -> other.getACL("/own", new Stat()));
        call("data of another", () -> other.getData("/own", false, null));
        List<ACL> open = new ArrayList<>(Ids.READ_ACL_UNSAFE);
        open.add(new ACL(Perms.ALL, new Id("ip", "127.0.0.0/8")));
        call("set acl", () -> owner.setACL("/own", open, 0));
        call("by address", () -> new String(other.getData("/own", false, null)));
        call("acl", () -> other.getACL("/own", new Stat()));
        call("creator", () -> other.create(
                "/mine", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
        owner.close();
        other.close();
    }

    static void sessions() throws Exception {
        Events first = new Events();
        ZooKeeper zk = open(first);
        first.await(Watcher.Event.KeeperState.SyncConnected);
        zk.create("/session", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        say("timeout", zk.getSessionTimeout());
        Events second = new Events();
        ZooKeeper again = new ZooKeeper(
                connect, TIMEOUT_MS, second, zk.getSessionId(), zk.getSessionPasswd());
        second.await(Watcher.Event.KeeperState.SyncConnected);
        say("same", again.getSessionId() == zk.getSessionId());
        call("owner", () -> again.exists("/session", false).getEphemeralOwner()
                == again.getSessionId());
        again.close();
        first.await(Watcher.Event.KeeperState.Expired);
        Events third = new Events();
        new ZooKeeper(connect, TIMEOUT_MS, third, 12345, new byte[16]);
        third.await(Watcher.Event.KeeperState.Expired);
        ZooKeeper last = open(new Events());
        call("gone", () -> last.exists("/session", false));
        last.close();
    }

    static void logIn() throws Exception {
        Events events = new Events();
        ZooKeeper zk = open(events, true);
        events.await(Watcher.Event.KeeperState.SaslAuthenticated);
        call("create", () -> zk.create(
                "/login", "x".getBytes(), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
        call("acl", () -> zk.getACL("/login", new Stat()));
        ZooKeeper other = open(new Events());
        call("other", () -> other.getData("/login", false, null));
        call("get", () -> new String(zk.getData("/login", false, null)));
        zk.close();
        other.close();
    }
}
