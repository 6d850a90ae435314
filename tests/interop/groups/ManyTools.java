import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one process, since most of a tool's time is Java's start.
 *
 * A command is a line: a main class and its arguments, with tabs between. Its answer is a line with the exit code and
 * the number of bytes that were printed, and those bytes.
 */
public class ManyTools {
    static class Exited extends RuntimeException {
        final int code;

        Exited(int code) {
            this.code = code;
        }
    }

    public static void main(String[] ignored) throws Exception {
        Exit.setExitProcedure((code, message) -> { throw new Exited(code); });
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            int code = run(line.split("\t"), new PrintStream(printed, true, "UTF-8"));
            answers.print(code + " " + printed.size() + "\n");
            printed.writeTo(answers);
            answers.flush();
        }
    }

    private static int run(String[] words, PrintStream printed) throws Exception {
        System.setOut(printed);
        System.setErr(printed);
        try {
            Object arguments = Arrays.copyOfRange(words, 1, words.length);
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Exited) {
                return ((Exited) thrown.getCause()).code;
            }
            thrown.getCause().printStackTrace(printed);
            return 1;
        }
    }
}
