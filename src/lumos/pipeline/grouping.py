"""Groups files into datasets, on rows that already stand for many files each."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# How Hive and Spark write a partition whose value is null.
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

# Where one folder holds the same dataset name in two formats, the first keeps the folder's name.
_FORMAT_RANK: Final = ("parquet", "avro", "orc", "csv", "json")


def summarise_places(files: DataFrame, *, scan: int) -> DataFrame:
    """One row per folder, name pattern and schema, with sizes and an order-free fingerprint."""
    newest_partition = F.concat_ws("/", F.transform("partitions", _in_order))
    return files.groupBy("base", "pattern", "format", "shape", "full").agg(
        F.count("size").alias("file_count"),
        F.count_if(F.col("size").isNull()).alias("unlisted"),
        F.count_if((F.col("read_in") == scan) & F.col("size").isNotNull()).alias("read"),
        F.count_if(F.col("code").isNotNull() & F.col("size").isNotNull()).alias("failed"),
        F.sum("size").alias("size"),
        F.sum("row_count").alias("row_count"),
        F.bool_and("row_count_exact").alias("row_count_exact"),
        F.max("modified").alias("modified"),
        F.max(newest_partition).alias("newest_partition"),
        F.max(F.size("partitions")).alias("partition_depth"),
        F.min("path").alias("first_path"),
        F.max("path").alias("last_path"),
        F.bit_xor(F.xxhash64("path", "size", "modified", "etag")).alias("content"),
    )


def _in_order(part: Column) -> Column:
    """A partition value as text that sorts as people count: 9 before 10."""
    value = part["value"]
    return F.when(value.rlike(r"^\d{1,20}$"), F.lpad(value, 20, "0")).otherwise(value)


def group_into_datasets(places: DataFrame, settled: DataFrame) -> DataFrame:
    """Adds `dataset` (its path) and `location` (its folder or file pattern) to every data place.

    What an earlier scan settled stays: a file that comes, goes or breaks must not rename others.
    """
    pattern, is_data = F.col("pattern"), F.col("format").isNotNull()
    data_pattern = F.when(is_data, pattern)
    folder = Window.partitionBy("base")
    is_only_pattern = F.min(data_pattern).over(folder) == F.max(data_pattern).over(folder)
    looks_like_folder = (pattern == "") | (is_only_pattern & pattern.contains("*"))
    is_folder = F.coalesce(F.col("was_folder"), looks_like_folder)
    own_path = F.concat_ws("/", "base", F.replace(pattern, F.lit("*"), F.lit("")))
    known = places.join(F.broadcast(settled), ["base", "pattern", "format"], "left")
    named = known.select(
        *places.columns,
        "was_second",
        is_folder.alias("is_folder"),
        F.when(is_data & is_folder, F.col("base")).when(is_data, own_path).alias("dataset"),
        F.when(is_data & is_folder, F.col("base"))
        .when(is_data, F.concat_ws("/", "base", pattern))
        .alias("location"),
    )
    return _apart_by_format(named)


def _apart_by_format(named: DataFrame) -> DataFrame:
    dataset = Window.partitionBy("dataset")
    rank = F.array_position(F.array(*map(F.lit, _FORMAT_RANK)), F.col("format"))
    first = F.max(F.when(~F.col("was_second"), F.col("format"))).over(dataset)
    is_second = F.coalesce(
        F.col("was_second"), F.col("format") != first, rank > F.min(rank).over(dataset)
    )
    apart = F.concat(F.col("dataset"), F.lit("/*."), F.col("format"))
    kept = [name for name in named.columns if name not in ("dataset", "location", "was_second")]
    return named.select(*kept, "dataset", "location", is_second.alias("is_second")).select(
        *kept,
        "is_second",
        *(
            F.when(F.col("is_second"), apart).otherwise(F.col(name)).alias(name)
            for name in ("dataset", "location")
        ),
    )


def summarise_datasets(grouped: DataFrame) -> DataFrame:
    """One row per dataset and schema; the row without a dataset counts what is no data."""
    return grouped.groupBy("dataset", "format", "shape", "full").agg(
        F.min("base").alias("base"),
        F.min("location").alias("location"),
        *(
            F.sum(name).alias(name)
            for name in ("file_count", "unlisted", "read", "failed", "size", "row_count")
        ),
        F.bool_and("row_count_exact").alias("row_count_exact"),
        F.max("modified").alias("modified"),
        F.max("newest_partition").alias("newest_partition"),
        F.max("partition_depth").alias("partition_depth"),
        F.array_distinct(F.array(F.min("first_path"), F.max("last_path"))).alias("examples"),
        F.bit_xor("content").alias("content"),
        # Only names that stand for many files can be settled one way or the other.
        F.collect_set(
            F.when(
                (F.col("pattern") == "") | F.col("pattern").contains("*"),
                F.struct("base", "pattern", "format", "is_folder", "is_second"),
            )
        ).alias("places"),
    )


def partition_keys(files: DataFrame) -> DataFrame:
    """Each folder's partition keys in order, with what their values have in common."""
    value = F.col("part.value")
    return (
        files.where(F.col("format").isNotNull())
        .select("base", "format", F.posexplode("partitions").alias("position", "part"))
        .where(value != _NULL_PARTITION)
        .groupBy("base", "format", "position", F.col("part.key").alias("key"))
        .agg(
            F.bool_and(value.rlike(r"^(0|-?[1-9]\d{0,17})$")).alias("integers"),
            F.bool_and(value.rlike(r"^\d{1,9}$")).alias("digits"),
            F.bool_and(value.rlike(r"^\d{4}-\d{2}-\d{2}$")).alias("dates"),
        )
    )
