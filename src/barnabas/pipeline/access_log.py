"""A line of an access log as columns: the Combined Log Format, and the Common one it extends.

    client ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "referrer" "agent"
    '------------- head ---------------------------'                    '- size -'

Inside quotes a server writes `\\"` for a quote and `\\\\` for a backslash. Both pairs are masked by
one control character each, after which a line is simply cut at its quotes: no pattern has to
cope with escapes, and none backtracks, however long or hostile a line is. (Java's patterns
recurse for each turn of an alternation: a few thousand escapes would overflow a task's stack.)
Pieces are cut again at their blanks, from both ends, because users and targets may have some.

A line is valid, or has the first `reason` that applies. What a client sends is not the log's
fault: a request that a server could not read (and answered with 4xx or 5xx) is a valid line
without method and path.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

NO_VALUE = "no value"
TOO_LONG = "too long"
NOT_UTF8 = "not UTF-8"
EMPTY = "empty line"
CONTROL_CHARACTER = "control character"
UNBALANCED_QUOTES = "unbalanced quotes"
NOT_AN_ACCESS_LOG = "not an access log line"
BAD_TIME = "bad time"
BAD_REQUEST = "bad request"
BAD_STATUS = "bad status"
BAD_SIZE = "bad size"

REASONS = (
    NO_VALUE,
    TOO_LONG,
    NOT_UTF8,
    EMPTY,
    CONTROL_CHARACTER,
    UNBALANCED_QUOTES,
    NOT_AN_ACCESS_LOG,
    BAD_TIME,
    BAD_REQUEST,
    BAD_STATUS,
    BAD_SIZE,
)

_TIME_FORMAT = "dd/MMM/yyyy:HH:mm:ss Z"

_MASKED_BACKSLASH = "\x01"
_MASKED_QUOTE = "\x02"

_METHOD = "^[A-Za-z][A-Za-z0-9_-]*$"
_CONTROL = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]"
_ORIGIN = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*"

# Pieces of a line cut at its quotes: head, request, answer (, referrer, a blank, agent, nothing).
_COMMON_PIECES = 3
_COMBINED_PIECES = 7

LINE_COLUMNS = """
    time timestamp, utc_offset_minutes int, client string, ident string, user string,
    method string, path string, query string, protocol string, status int, bytes bigint,
    referrer string, agent string
"""


def parse(records: DataFrame) -> DataFrame:
    """`records` with the columns of `LINE_COLUMNS` and `reason`, made from column `value`.

    `value` is binary: a line without its line feed. A boolean column `cut` says that it is only
    the beginning of a longer line. `reason` is null for a valid line, else one of `REASONS`;
    the other columns are then null, or what could be made out. "-" in the log is null.
    """
    given = records.columns
    text = F.rtrim(F.col("value").cast("string"), F.lit("\r"))
    whole = records.select(
        *given,
        F.is_valid_utf8(text).alias("_utf8"),
        F.make_valid_utf8(text).alias("_text"),
    )
    masked = F.replace(
        F.replace(F.col("_text"), F.lit("\\\\"), F.lit(_MASKED_BACKSLASH)),
        F.lit('\\"'),
        F.lit(_MASKED_QUOTE),
    )
    pieces = whole.select("*", F.split(masked, '"', -1).alias("_pieces"))
    return (
        pieces.transform(_words)
        .transform(_fields)
        .select(*given, *_columns(), _reason().alias("reason"))
    )


def _words(lines: DataFrame) -> DataFrame:
    head, request, answer = (F.get("_pieces", F.lit(i)) for i in range(3))
    return lines.select(
        "*",
        F.size("_pieces").alias("_count"),
        F.split(head, " ", -1).alias("_head"),
        F.split(request, " ", -1).alias("_request"),
        F.split(answer, " ", -1).alias("_answer"),
    )


def _fields(lines: DataFrame) -> DataFrame:
    """The words put together to fields, still as texts; null where there is no such word."""
    head_length, request_length = F.size("_head"), F.size("_request")
    time, zone = (F.get("_head", head_length - i) for i in (3, 2))
    last = F.get("_request", request_length - 1)
    has_protocol = (request_length > 2) & last.startswith("HTTP/")
    target_length = request_length - F.when(has_protocol, 2).otherwise(1)
    return lines.select(
        "*",
        F.get("_head", F.lit(0)).alias("_client"),
        F.get("_head", F.lit(1)).alias("_ident"),
        F.when(head_length > 5, F.array_join(F.slice("_head", 3, head_length - 5), " ")).alias(
            "_user"
        ),
        F.when(
            time.startswith("[") & zone.endswith("]") & (F.get("_head", head_length - 1) == ""),
            F.concat_ws(" ", F.substring(time, 2, 64), F.substring_index(zone, "]", 1)),
        ).alias("_time"),
        F.get("_request", F.lit(0)).alias("_method"),
        F.array_join(F.slice("_request", 2, target_length), " ").alias("_target"),
        F.when(has_protocol, last).alias("_protocol"),
        F.get("_answer", F.lit(1)).alias("_status"),
        F.get("_answer", F.lit(2)).alias("_size"),
        F.get("_pieces", F.lit(3)).alias("_referrer"),
        F.get("_pieces", F.lit(5)).alias("_agent"),
    ).select(
        "*",
        F.try_to_timestamp("_time", F.lit(_TIME_FORMAT)).alias("time"),
        F.when(_is_number("_status", "3"), F.col("_status").try_cast("int")).alias("status"),
        F.when(_is_number("_size", "1,18"), F.col("_size").try_cast("bigint")).alias("bytes"),
        (F.col("_method").rlike(_METHOD) & (F.col("_target") != "")).alias("_is_read"),
    )


def _columns() -> list[Column]:
    sign = F.when(F.substring("_time", -5, 1) == "-", -1).otherwise(1)
    hours = F.substring("_time", -4, 2).try_cast("int")
    minutes = F.substring("_time", -2, 2).try_cast("int")
    target = F.regexp_replace("_target", _ORIGIN, "")
    path = F.substring_index(target, "?", 1)
    query = target.substr(F.instr(target, "?") + 1, F.length(target))
    is_read = F.col("_is_read")
    return [
        F.col("time"),
        (sign * (hours * 60 + minutes)).alias("utc_offset_minutes"),
        _given("_client").alias("client"),
        _given("_ident").alias("ident"),
        _given("_user").alias("user"),
        F.when(is_read, F.col("_method")).alias("method"),
        F.when(is_read, F.when(path == "", "/").otherwise(_unmasked(path))).alias("path"),
        F.when(is_read & (F.instr(target, "?") > 0), _unmasked(query)).alias("query"),
        F.when(is_read, F.col("_protocol")).alias("protocol"),
        F.col("status"),
        F.col("bytes"),
        _given("_referrer").alias("referrer"),
        _given("_agent").alias("agent"),
    ]


def _reason() -> Column:
    combined = (
        (F.col("_count") == _COMBINED_PIECES)
        & (F.get("_pieces", F.lit(4)) == " ")
        & (F.get("_pieces", F.lit(6)) == "")
    )
    head_is_good = (F.col("_client") != "") & (F.col("_ident") != "") & (F.col("_user") != "")
    answer_is_good = (
        (F.get("_answer", F.lit(0)) == "")
        & (F.col("_status") != "")
        & (F.col("_size") != "")
        & (F.array_join(F.slice("_answer", 4, 2), " ") == "")
    )
    shaped = (
        (combined | (F.col("_count") == _COMMON_PIECES))
        & head_is_good
        & F.col("_time").isNotNull()
        & answer_is_good
    )
    refused = F.coalesce(F.col("status") >= 400, F.lit(False))
    return (
        F.when(F.col("value").isNull(), NO_VALUE)
        .when(F.col("cut"), TOO_LONG)
        .when(~F.col("_utf8"), NOT_UTF8)
        .when(F.trim("_text") == "", EMPTY)
        .when(F.col("_text").rlike(_CONTROL), CONTROL_CHARACTER)
        .when(F.col("_count") % 2 == 0, UNBALANCED_QUOTES)
        .when(~F.coalesce(shaped, F.lit(False)), NOT_AN_ACCESS_LOG)
        .when(F.col("time").isNull(), BAD_TIME)
        .when(~F.coalesce(F.col("status").between(100, 599), F.lit(False)), BAD_STATUS)
        .when(~(F.col("_is_read") | refused), BAD_REQUEST)
        .when((F.col("_size") != "-") & F.col("bytes").isNull(), BAD_SIZE)
    )


def _is_number(name: str, digits: str) -> Column:
    return F.col(name).rlike(f"^[0-9]{{{digits}}}$")


def _given(name: str) -> Column:
    """A field's text, null where the log has nothing to say."""
    return F.when(~F.col(name).isin("", "-"), _unmasked(F.col(name)))


def _unmasked(text: Column) -> Column:
    return F.replace(
        F.replace(text, F.lit(_MASKED_QUOTE), F.lit('"')), F.lit(_MASKED_BACKSLASH), F.lit("\\")
    )
