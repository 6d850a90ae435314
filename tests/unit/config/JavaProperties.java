// java.util.Properties as an oracle. One case a line on standard input, one answer a line on standard output.
//   load <hex of the file's bytes>            -> <hex key>=<hex value> ... (sorted), or "error"
//   store <hex key>=<hex value>               -> <hex of the one line that store() writes>
// Keys and values are hex of UTF-16BE. Run with: java JavaProperties.java

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class JavaProperties {
    static final HexFormat HEX = HexFormat.of();

    static String hex(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray())
            out.append(String.format("%04x", (int) c));
        return out.toString();
    }

    static String text(String hex) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4)
            out.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        return out.toString();
    }

    static String load(byte[] file) throws IOException {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(file));
        } catch (IllegalArgumentException bad) {
            return "error";
        }
        TreeSet<String> pairs = new TreeSet<>();
        for (String key : properties.stringPropertyNames())
            pairs.add(hex(key) + "=" + hex(properties.getProperty(key)));
        return String.join(" ", pairs);
    }

    static String store(String pair) throws IOException {
        String[] sides = pair.split("=", -1);
        Properties properties = new Properties();
        properties.setProperty(text(sides[0]), text(sides[1]));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        properties.store(out, null);
        String file = out.toString(StandardCharsets.ISO_8859_1);
        return HEX.formatHex(file.substring(file.indexOf('\n') + 1).getBytes(StandardCharsets.ISO_8859_1));
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "US-ASCII");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            out.println(words[0].equals("load") ? load(HEX.parseHex(words[1])) : store(words[1]));
        }
        out.flush();
    }
}
