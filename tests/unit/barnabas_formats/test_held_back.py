"""Lines that are not in the catalogue, with other fractions, zones or missing parts (SP-2).

Each has the right columns or is raw, but none has wrong columns.
"""

from __future__ import annotations

import pytest

from tests.kit.pipeline.log_records import parsed

RAW = "raw"
DAY = "2026-03-10T10:00:00"


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("2026/03/10 10:00:00 [crit] 7#7: ", "nginx", {"level": "FATAL", "message": ""}),
        ("2026/03/10 10:00:00.123456 [emerg] oops", "go", {"message": "[emerg] oops"}),
        ("2026/03/10 10:00:00 ERROR: full", "go", {"level": "ERROR", "message": "full"}),
        ("2026/03/10 10:00:00 http: panic", "go", {"time": f"{DAY}Z", "message": "http: panic"}),
        ("2026/03/10 10:00:00", RAW, {}),
        # ---- PostgreSQL: zones by name and offset, a user without a name ----
        (
            "2026-03-10 10:00:00.123 CEST [1] LOG:  checkpoint starting: time",
            "postgresql",
            {"time": "2026-03-10T08:00:00.123Z", "message": "checkpoint starting: time"},
        ),
        ("2026-03-10 10:00:00 -03 [1] LOG:  x", "postgresql", {"time": "2026-03-10T13:00:00Z"}),
        (
            "2026-03-10 10:00:00 UTC [77] [unknown]@[unknown] LOG:  incomplete startup packet",
            "postgresql",
            {"level": "INFO", "pid": "77", "message": "incomplete startup packet"},
        ),
        ("2026-03-10 10:00:00 UTC postgres LOG: hello", RAW, {}),
        # ---- MySQL ----
        (
            "2026-03-10T10:00:00.123456Z 12 [Note] [MY-010051] [Server] Event Scheduler: x",
            "mysql",
            {"component": "Server", "level": "INFO", "message": "Event Scheduler: x"},
        ),
        ("2026-03-10 10:00:00 9 [ERROR] mysqld: x", "mysql", {"message": "mysqld: x"}),
        # ---- Redis ----
        ("1234:M 10 Mar 10:00:00.123 * an old version", RAW, {}),
        ("1:signal-handler (1773136800) Received SIGTERM", RAW, {}),
        # ---- klog ----
        ("I0310 10:00:00.123456 1 main.go:5]", "klog", {"level": "INFO", "message": ""}),
        ("I0310 10:00:00 1 main.go:5] no fraction", RAW, {}),
        # ---- dpkg ----
        ("2026-03-10 10:00:00 something else", RAW, {}),
        # ---- Spring Boot ----
        (
            "2026-03-10T10:00:00.123Z  WARN 1 --- [app] [  main] c.e.App :",
            "spring-boot",
            {"thread": "main", "component": "c.e.App", "message": ""},
        ),
        (
            "2026-03-10T10:00:00.123Z INFO 1 --- [app] [nio-1] [abc-def] c.e.A : x",
            "spring-boot",
            {"thread": "nio-1", "component": "c.e.A", "message": "x"},
        ),
        (
            "2026-03-10 10:00:00.123  INFO [app,,] 1 --- [main] c.e.A : x",
            "spring-boot",
            {"thread": "main", "pid": "1", "message": "x"},
        ),
        # ---- Logback and Log4j ----
        ("2026-03-10 10:00:00.1 [main] INFO a.B -- x", "log4j", {"component": "a.B"}),
        (
            "2026-03-10T10:00:00+01:00 [main] INFO a.B - x",
            "log4j",
            {"time": "2026-03-10T09:00:00Z", "thread": "main", "component": "a.B"},
        ),
        ("10:00:00.123 [main] INFO a.B - ", "logback", {"thread": "main", "message": ""}),
        ("10:00:00 hello", RAW, {}),
        ("2026-03-10 10:00:00 INFO Starting - now", RAW, {}),
        ("2026-03-10T10:00:00Z WARN a.b.C: x", "log4j", {"component": "a.b.C", "message": "x"}),
        ("[2026-03-10 10:00:00,123] INFO in flight (kafka.A)", "log4j", {"component": "kafka.A"}),
        # ---- syslog ----
        ("<165>1 2003-10-11T22:14:15.003Z - - - - - ", "syslog", {"message": ""}),
        ("<192>Mar  1 00:00:00 h a: m", RAW, {}),
        # Cisco's devices: counters, a mark, a year, a zone, and a host
        *(
            (f"<189>83: {time}: %SYS-5-CONFIG_I: x", "syslog", {"level": "INFO", "time": at})
            for time, at in (
                ("*Mar 10 10:00:00", f"{DAY}Z"),
                (".Mar 10 2010 10:00:00", "2010-03-10T10:00:00Z"),
                ("000123: Mar 10 2010 10:00:00.663", "2010-03-10T10:00:00.663Z"),
                ("*Mar 10 10:00:00 CET", "2026-03-10T09:00:00Z"),
                ("foo: *Mar 10 2010 10:00:00.5 UTC", "2010-03-10T10:00:00.5Z"),
            )
        ),
        ("Sep 14 2016 10:07:20: %ASA-6-1: x", "syslog", {"time": "2016-09-14T10:07:20Z"}),
        ("<166>Sep 14 2016 09:33:47 h : %ASA-6-1: x", "syslog", {"host": "h", "level": "INFO"}),
        ("<166>Mar 10 10:00:00: %ASA-6-1: x", "syslog", {"message": "%ASA-6-1: x"}),
        ("<189>82: 00:20:10: %SYS-5-X: x", "syslog", {"message": "82: 00:20:10: %SYS-5-X: x"}),
        # a year, a weekday or a zone at another place
        *(
            (f"<13>{time} h a: m", "syslog", {"time": at, "host": "h", "component": "a"})
            for time, at in (
                ("Mar 10 10:00:00 2018", "2018-03-10T10:00:00Z"),
                ("Mar 10 2018 10:00:00", "2018-03-10T10:00:00Z"),
                ("2018 Mar 10 10:00:00", "2018-03-10T10:00:00Z"),
                ("Sat Mar 10 10:00:00 2018", "2018-03-10T10:00:00Z"),
                ("Mar 10 10:00:00 CET", "2026-03-10T09:00:00Z"),
                ("Mar 10 10:00:00 +0100", "2026-03-10T09:00:00Z"),
            )
        ),
        ("Mar 10 10:00:00 2018 a[1]: m", "syslog", {"component": "a", "time": f"2018{DAY[4:]}Z"}),
        ("Sat 2018-03-10 10:00:00 CET h a[1]: m", "syslog", {"time": "2018-03-10T09:00:00Z"}),
        ("2026-03-10 10:00:00 h a[1]: m", "syslog", {"time": f"{DAY}Z", "host": "h"}),
        ("2026-03-10T10:00:00 h a[1]: m", "syslog", {"time": f"{DAY}Z", "host": "h"}),
        ("<13>2026-03-10T10:00:00Z a[1]: m", "syslog", {"component": "a", "message": "m"}),
        # tags: a level in front, no blank behind, no number, blanks, a second program
        ("<13>Mar 10 10:00:00 h notice a[1]: m", "syslog", {"level": "INFO", "component": "a"}),
        ("Mar 10 10:00:00 h a[1]:m", "syslog", {"component": "a", "pid": "1", "message": "m"}),
        ("Mar 10 10:00:00 h a[main]: m", "syslog", {"component": "a", "message": "m"}),
        ("Mar 10 10:00:00 h Microsoft Word[7]: m", "syslog", {"component": "Microsoft Word"}),
        ("Mar 10 10:00:00 h com.b[1] (c.d[2]): m", "syslog", {"component": "com.b", "pid": "1"}),
        ("Mar 10 10:00:00 h syslogd 1.4.1: restart.", "syslog", {"host": "h"}),
        ("Mar 10 10:00:00 h message repeated 5 times: [ m]", "syslog", {"host": "h"}),
        # only a priority, or no tag: the host is not guessed
        ("<13>Mar 10 10:00:00 so what", "syslog", {"time": f"{DAY}Z", "message": "so what"}),
        ("<6>[    0.000000] Linux", "syslog", {"level": "INFO", "message": "Linux"}),
        ("\ufeffMar 10 10:00:00 h a: m", "syslog", {"component": "a"}),
        ("Mar 10 10:00:00 so what", RAW, {}),
        ("Mar 10 10:00:00.123456 h a[1]: m", "syslog", {"time": f"{DAY}.123456Z", "pid": "1"}),
        ("2026-03-10T10:00:00+0100 h systemd[1]: up", "syslog", {"component": "systemd"}),
        # ---- containers ----
        (
            '{"log":"{\\"level\\":30,\\"time\\":1,\\"pid\\":6}\\n","stream":"stdout",'
            '"time":"2026-03-10T10:00:00Z"}',
            "docker",
            {"message": '{"level":30,"time":1,"pid":6}'},
        ),
        ("2026-03-10T10:00:00Z stdout F", "cri", {"message": ""}),
        ("2026-03-10T10:00:00Z stderr P:a:b part", "cri", {"message": "part"}),
        ("2026-03-10T10:00:00Z stdin F x", RAW, {}),
        # ---- JSON ----
        ('{"level":"info","ts":"yesterday","msg":"x"}', RAW, {}),
        ('{"level":"info","ts":true,"msg":"x"}', RAW, {}),
        ('{"level":"info","ts":1.5e9,"msg":{"a":1}}', "zap", {"message": '{"a": 1}'}),
        ('{"timestamp":"2026-03-10T10:00:00Z","level":"odd","message":"x"}', "json", {}),
        ('{"time":1773136800123456789,"message":"x"}', "json", {"time": f"{DAY}.123456Z"}),
        ('{"time":12,"severity":"error","message":"x"}', RAW, {}),
        ('{"message":"only"}', RAW, {}),
        ('{"level":"info","msg":"x"', RAW, {}),
        ("{}", RAW, {}),
        (
            '{"t":{"$date":"2026-03-10T10:00:00Z"},"s":"F","c":"-","ctx":"main","msg":""}',
            "mongodb",
            {"level": "FATAL", "thread": "main", "message": ""},
        ),
        ('{"__REALTIME_TIMESTAMP":"1773136800000000","PRIORITY":"9"}', "journald-json", {}),
        # ---- logfmt ----
        ('level=warn ts=1773136800.5 msg="a b" flag', "logfmt", {"time": f"{DAY}.5Z"}),
        ("a=b c=d", RAW, {}),
        ("hello level=info msg=hi", RAW, {}),
        # ---- Python ----
        ("INFO: not Uvicorn's", RAW, {}),
        (
            "[2026-03-10T10:00:00.123+0000] {task.py:11} INFO - met",
            "python",
            {"component": "task.py", "message": "met"},
        ),
        ("2026-03-10 10:00:00.1 | INFO     | a.b:<module>:12 - hi", "python", {"component": "a.b"}),
        ("2026-03-10T10:00:00.606Z ERROR another x", RAW, {}),
        # ---- a level is no host ----
        ("Mar 10 10:00:00 WARN shop[7]: late", RAW, {}),
        ("2026-03-10T10:00:00+01:00 error shop: late", RAW, {}),
        ("2026-03-10T10:00:00+01:00 errata shop: late", "syslog", {"host": "errata"}),
        ("2026-03-10T10:00:00.123Z\tINFO\tmain.go:12\tstarted", RAW, {}),
        ("2026-03-10T10:00:00.123+01:00 <0.229.0> rabbit: started", RAW, {}),
        # ---- layouts that are almost those of a format ----
        ("2026-03-10T10:00:00.123Z [info] agent: x", RAW, {}),
        ("2026-03-10T10:00:00.123Z [INFO] starting the agent: x", RAW, {}),
        ("2026-03-10T10:00:00.123Z [WARN]  raft: a: [b]", "hclog", {"message": "a: [b]"}),
        ("[2026-03-10T10:00:00,123][INFO ][o.e.n.Node] started", RAW, {}),
        ("[2026-03-10 10:00:00] local.INFO", RAW, {}),
        ("[2026-03-10 10:00:00] local.INFO: ", "monolog", {"component": "local", "message": ""}),
        ("2026-03-10 10:00:00.123 [info] <0.229.0> without an offset", RAW, {}),
        ("10-Mar-2026 10:00:00.123 INFO main org.a.B.c x", RAW, {}),
        ("10-Mar-2026 10:00:00.123 SEVERE [a] org.a.B.<init> [x] y", "tomcat", {"level": "ERROR"}),
        # ---- Java's own logging ----
        (
            "Mar 10, 2026 1:02:03 PM org.a.B$1 <init>\nFINE: x: y",
            "tomcat",
            {"time": "2026-03-10T13:02:03Z", "level": "DEBUG", "component": "org.a.B$1"},
        ),
        ("Mar 10, 2026 1:02:03 PM org.a.B run", RAW, {}),
        ("Mar 10, 2026 1:02:03 PM", RAW, {}),
        # ---- Rust: a span without fields looks like a crate ----
        ("2026-03-10T10:00:00.1Z  INFO request: shop: started", RAW, {}),
        (
            "2026-03-10T10:00:00.1Z  INFO request: shop::cart: a: b",
            "rust",
            {"component": "shop::cart", "message": "a: b"},
        ),
        (
            "2026-03-10T10:00:00.1Z DEBUG a:b{x=[1] y={}}: c: d",
            RAW,
            {},
        ),
        (
            "2026-03-10T10:00:00Z TRACE a:b{x=[1]}:c: shop: [d] e: f",
            "rust",
            {"component": "shop", "message": "[d] e: f", "level": "TRACE"},
        ),
        ("[2026-03-10T10:00:00Z INFO] my_app: x", RAW, {}),
        ("2026-03-10T10:00:00.1Z  INFO 71 --- [main] com.x.A : m", "spring-boot", {}),
        # ---- .NET ----
        ("info: sshd[7]: no", RAW, {}),
        ("fail: A.B[-1]", "dotnet", {"message": "", "level": "ERROR"}),
        ("crit: A.B[0]\n      a\n\n      b", "dotnet", {"message": "a", "more": "\n      b"}),
        ("<13>a[7]: x", "syslog", {"component": "a", "pid": "7", "message": "x"}),
        (
            '{"EventId":1,"LogLevel":"Critical","Category":"A","Message":"m",'
            '"Timestamp":"2026-03-10T10:00:00Z"}',
            "dotnet",
            {"level": "FATAL", "time": f"{DAY}Z"},
        ),
        # ---- Apache ----
        (
            "[Tue Mar 10 10:00:00 2026] [error] [client 192.0.2.4] no",
            "apache",
            {"message": "[client 192.0.2.4] no"},
        ),
    ],
)
def test_sp_2_a_line_that_no_sample_shows(
    line: str, name: str, expected: dict[str, object]
) -> None:
    (found,) = parsed(line)
    assert found["format"] == name
    assert {key: found.get(key) for key in expected} == expected
    if name == RAW:
        assert found == {"format": RAW, "message": line}


def test_sp_2_an_object_with_an_impossible_time_is_malformed() -> None:
    (found,) = parsed('{"time":"2026-02-31T10:00:00Z","level":"INFO","msg":"x"}')
    assert found == {"reason": "the line has an impossible time (slog)"}
