import java.io.File;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.expressions.*;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Writes tables with Iceberg itself, and tells what it reads of them: one line of JSON for each. */
public class IcebergJudge {
  static final HadoopTables TABLES = new HadoopTables(new Configuration());
  static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    for (int version = 1; version <= 4; version++) {
      for (String codec : List.of("none", "gzip")) {
        Table table = written(args[0] + "/v" + version + "_" + codec, version, codec);
        System.out.println(JSON.writeValueAsString(facts(table)));
      }
    }
  }

  static Schema schema(int version) {
    List<Types.NestedField> fields = new ArrayList<>(List.of(
        Types.NestedField.required(1, "id", Types.LongType.get(), "The key"),
        Types.NestedField.optional(2, "country", Types.StringType.get()),
        Types.NestedField.optional(3, "ts", Types.TimestampType.withZone()),
        Types.NestedField.optional(4, "name", Types.StringType.get()),
        Types.NestedField.optional(5, "price", Types.DecimalType.of(20, 4)),
        Types.NestedField.optional(6, "tags", Types.ListType.ofRequired(7, Types.StringType.get())),
        Types.NestedField.optional(8, "at", Types.MapType.ofOptional(9, 10, Types.StringType.get(),
            Types.StructType.of(Types.NestedField.required(11, "x", Types.DoubleType.get(), "inner")))),
        Types.NestedField.optional(12, "key", Types.UUIDType.get()),
        Types.NestedField.optional(13, "raw", Types.FixedType.ofLength(5)),
        Types.NestedField.optional(14, "day", Types.DateType.get()),
        Types.NestedField.optional(15, "clock", Types.TimeType.get())));
    if (version >= 3) {
      fields.add(Types.NestedField.optional(16, "v", Types.VariantType.get()));
      fields.add(Types.NestedField.optional(17, "g", Types.GeometryType.of("srid:3857")));
      fields.add(Types.NestedField.optional(18, "h", Types.GeographyType.crs84()));
      fields.add(Types.NestedField.optional(19, "n", Types.TimestampNanoType.withoutZone()));
      fields.add(Types.NestedField.optional(20, "u", Types.UnknownType.get()));
      fields.add(Types.NestedField.optional("d").withId(21).ofType(Types.IntegerType.get())
          .withInitialDefault(Literal.of(5)).withWriteDefault(Literal.of(6)).build());
    }
    return new Schema(fields, Set.of(1));
  }

  static Table written(String location, int version, String codec) {
    Schema schema = schema(version);
    PartitionSpec spec = PartitionSpec.builderFor(schema)
        .identity("country").day("ts").bucket("id", 16).truncate("name", 4).identity("day").identity("price").build();
    Table table = TABLES.create(schema, spec, SortOrder.builderFor(schema).asc("id").desc("ts").build(),
        Map.of("format-version", "" + version, "write.metadata.compression-codec", codec, "comment", "By Iceberg"), location);
    AppendFiles append = table.newAppend();
    for (int n = 0; n < 5; n++) {
      append.appendFile(file(table, "a" + n, n));
    }
    append.commit();
    table.updateSchema().addColumn("extra", Types.StringType.get(), "Added").commit();
    table.updateSchema().renameColumn("name", "title").commit();
    table.newFastAppend().appendFile(file(table, "b", 7)).commit();
    table.updateSchema().deleteColumn("extra").commit();
    table.newDelete().deleteFile(location + "/data/a1.parquet").commit();
    table.manageSnapshots().createTag("first", table.history().get(0).snapshotId()).createBranch("audit").commit();
    if (version == 2) {
      table.newRowDelta()
          .addDeletes(FileMetadata.deleteFileBuilder(table.spec()).ofPositionDeletes().withPath(location + "/data/p.parquet")
              .withFileSizeInBytes(33).withRecordCount(2).withPartitionPath(path(2)).build())
          .addDeletes(FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(1).withPath(location + "/data/e.parquet")
              .withFileSizeInBytes(44).withRecordCount(3).withPartitionPath(path(3)).build())
          .commit();
      table.newFastAppend().appendFile(file(table, "c", 3)).commit();
    }
    if (version >= 3) {
      table.newRowDelta().addDeletes(FileMetadata.deleteFileBuilder(table.spec()).ofPositionDeletes()
          .withFormat(FileFormat.PUFFIN).withPath(location + "/data/v.puffin").withFileSizeInBytes(99).withRecordCount(4)
          .withPartitionPath(path(2)).withReferencedDataFile(location + "/data/a2.parquet")
          .withContentOffset(4).withContentSizeInBytes(50).build()).commit();
    }
    table.updateSpec().removeField("country").addField(Expressions.month("ts")).removeField("ts_day").commit();
    table.rewriteManifests().clusterBy(file -> "all").commit();
    table.updateProperties().set("x", "y").commit();
    return TABLES.load(location);
  }

  static String path(int n) {
    return "country=" + (n % 2 == 0 ? "de" : "a b%2Fc") + "/ts_day=2024-05-0" + (n + 1) + "/id_bucket=" + n
        + "/name_trunc=abc" + n + "/day=2024-0" + (n + 1) + "-01/price=" + n + ".2500";
  }

  static DataFile file(Table table, String name, int n) {
    return DataFiles.builder(table.spec()).withPath(table.location() + "/data/" + name + ".parquet")
        .withFileSizeInBytes(100 + n).withRecordCount(10 + n).withPartitionPath(path(n)).withFormat(FileFormat.PARQUET).build();
  }

  static Map<String, Object> facts(Table table) throws Exception {
    List<Object> files = new ArrayList<>();
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      for (FileScanTask task : tasks) {
        List<String> deletes = new ArrayList<>();
        for (DeleteFile delete : task.deletes()) deletes.add(delete.location().toString());
        files.add(List.of(task.file().location().toString(), task.file().fileSizeInBytes(), task.file().recordCount(),
            task.spec().partitionToPath(task.file().partition()), deletes));
      }
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("location", table.location());
    told.put("uuid", table.uuid().toString());
    told.put("snapshot", table.currentSnapshot().snapshotId());
    told.put("operation", table.currentSnapshot().operation());
    told.put("at", table.currentSnapshot().timestampMillis());
    told.put("spec", table.spec().toString());
    told.put("schemas", table.schemas().size());
    told.put("schema", SchemaParser.toJson(table.schema()));
    told.put("files", files);
    return told;
  }
}
