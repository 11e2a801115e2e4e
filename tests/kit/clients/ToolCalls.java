import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/**
 * Runs command-line tools of Kafka 2.3.1, one after the other, in one JVM. Each line of standard
 * input is a call: the class, its standard input in base64, and its words, separated by tabs. The
 * answer is a line with the exit code and the sizes of what it printed to standard output and to
 * standard error, and then those bytes.
 */
public class ToolCalls {
    static final class Ended extends RuntimeException {
        final int code;

        Ended(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader calls =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        kafka.utils.Exit.setExitProcedure((code, message) -> {
            throw new Ended((Integer) code);
        });
        String call;
        while ((call = calls.readLine()) != null) {
            String[] parts = call.split("\t", -1);
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            int code = run(parts, stream(output), stream(errors));
            answers.println(code + " " + output.size() + " " + errors.size());
            output.writeTo(answers);
            errors.writeTo(answers);
            answers.flush();
        }
    }

    private static PrintStream stream(ByteArrayOutputStream target) {
        return new PrintStream(target, true, StandardCharsets.UTF_8);
    }

    private static int run(String[] parts, PrintStream output, PrintStream errors)
            throws Exception {
        var main = Class.forName(parts[0]).getMethod("main", String[].class);
        String[] words = Arrays.copyOfRange(parts, 2, parts.length);
        System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(parts[1])));
        System.setOut(output);
        System.setErr(errors);
        return (Integer) scala.Console.withOut(output, () -> {
            try {
                main.invoke(null, (Object) words);
                return 0;
            } catch (java.lang.reflect.InvocationTargetException problem) {
                Throwable cause = problem.getCause();
                if (cause instanceof Ended) {
                    return ((Ended) cause).code;
                }
                cause.printStackTrace(errors);
                return 1;
            } catch (IllegalAccessException problem) {
                throw new IllegalStateException(problem);
            }
        });
    }
}
