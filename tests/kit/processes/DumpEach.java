import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Runs Kafka's DumpLogSegments once per line of the file that is named, with that line's arguments
 * (separated by tabs), and writes for each: how many bytes it printed, in a line, and those bytes.
 * The tool ends at the first file that it cannot read, so it is called for one at a time.
 */
public class DumpEach {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream listener = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setErr(new PrintStream(new ByteArrayOutputStream()));
            scala.Console.withOut(listener, () -> {
                try {
                    kafka.tools.DumpLogSegments.main(line.split("\t"));
                } catch (Throwable problem) {
                    // What was printed up to here is compared all the same.
                }
                return null;
            });
            listener.flush();
            out.println(said.size());
            said.writeTo(out);
        }
        out.flush();
    }
}
