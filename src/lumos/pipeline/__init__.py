"""Discovery on Spark: from listed files to datasets with schemas."""
