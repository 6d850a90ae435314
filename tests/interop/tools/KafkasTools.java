import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one process, since most of a tool's time is Java's start.
 *
 * A command is a count of words, the words (a main class and its arguments) and what stands on its standard input. The
 * answer is the exit code, standard output and standard error. Many tools catch what the exit procedure throws and
 * go on to complain about it, so the answer is as of the first exit.
 */
public class KafkasTools {
    static final ByteArrayOutputStream out = new ByteArrayOutputStream();
    static final ByteArrayOutputStream err = new ByteArrayOutputStream();
    static Integer code;
    static byte[] outAtExit;
    static byte[] errAtExit;

    static synchronized void exit(int wanted) {
        if (code == null) {
            System.out.flush();
            System.err.flush();
            code = wanted;
            outAtExit = out.toByteArray();
            errAtExit = err.toByteArray();
        }
        throw new RuntimeException("exit " + wanted);
    }

    public static void main(String[] ignored) throws Exception {
        Exit.setExitProcedure((wanted, message) -> exit(wanted));
        Exit.setHaltProcedure((wanted, message) -> exit(wanted));
        DataOutputStream answers = new DataOutputStream(System.out);
        DataInputStream commands = new DataInputStream(System.in);
        while (true) {
            String[] words = new String[commands.readInt()];
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(commands.readNBytes(commands.readInt()), "UTF-8");
            }
            byte[] input = commands.readNBytes(commands.readInt());
            run(words, input);
            answers.writeInt(code);
            answers.writeInt(outAtExit.length);
            answers.write(outAtExit);
            answers.writeInt(errAtExit.length);
            answers.write(errAtExit);
            answers.flush();
        }
    }

    private static void run(String[] words, byte[] input) throws Exception {
        out.reset();
        err.reset();
        code = null;
        System.setIn(new ByteArrayInputStream(input));
        System.setOut(new PrintStream(out, true, "UTF-8"));
        System.setErr(new PrintStream(err, true, "UTF-8"));
        try {
            Object arguments = Arrays.copyOfRange(words, 1, words.length);
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, arguments);
            exit(0);
        } catch (InvocationTargetException thrown) {
            if (code == null) {
                thrown.getCause().printStackTrace(System.err);
            }
            end(1);
        } catch (RuntimeException exited) {
            end(1);
        }
    }

    private static void end(int wanted) {
        try {
            exit(wanted);
        } catch (RuntimeException known) {
            // The answer is taken.
        }
    }
}
