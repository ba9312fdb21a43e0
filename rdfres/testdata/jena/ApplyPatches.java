import java.nio.file.*;
import org.apache.jena.query.ReadWrite;
import org.apache.jena.rdfpatch.RDFPatchOps;
import org.apache.jena.riot.*;
import org.apache.jena.riot.lang.LabelToNode;
import org.apache.jena.sparql.core.*;

/**
 * Reads a graph, keeping the labels of its blank nodes, and applies RDF Patches, each to what the one before made.
 * Prints the graph after each as N-Triples and a line "#".
 */
public class ApplyPatches {
    public static void main(String[] files) throws Exception {
        DatasetGraph data = DatasetGraphFactory.createTxnMem();
        data.begin(ReadWrite.WRITE);
        RDFParser.source(Path.of(files[0])).labelToNode(LabelToNode.createUseLabelAsGiven()).parse(data);
        data.commit();
        data.end();
        for (int i = 1; i < files.length; i++) {
            RDFPatchOps.applyChange(data, Files.newInputStream(Path.of(files[i])));
            data.begin(ReadWrite.READ);
            RDFDataMgr.write(System.out, data.getDefaultGraph(), Lang.NTRIPLES);
            data.end();
            System.out.println("#");
        }
    }
}
