import java.io.File;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/** A KDC (Apache Kerby's): "DIRECTORY PORT KEYTAB=PRINCIPAL…". Says "ready", and goes on until its input ends. */
public class Kdc {
    public static void main(String[] args) throws Exception {
        SimpleKdcServer kdc = new SimpleKdcServer();
        kdc.setKdcRealm("EXAMPLE.COM");
        kdc.setKdcHost("localhost");
        kdc.setWorkDir(new File(args[0]));
        kdc.setAllowUdp(false);
        kdc.setKdcTcpPort(Integer.parseInt(args[1]));
        kdc.init();
        for (int i = 2; i < args.length; i++) {
            String[] given = args[i].split("=", 2);
            kdc.createPrincipals(given[1]);
            kdc.exportPrincipal(given[1], new File(args[0], given[0]));
        }
        kdc.start();
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
        kdc.stop();
    }
}
