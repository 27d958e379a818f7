/** What `lumos show` returns for a dataset: the aspects that pages read. */
import type { Schemas } from "./client";

export interface ColumnStatistics {
  null_count?: number | null;
  compressed_bytes?: number | null;
  minimum?: string | null;
  maximum?: string | null;
}

export interface DatasetEntry {
  urn: string;
  name: string;
  platform: string;
  format?: string | null;
  location?: { uri: string; partitioning: string | null; partition_keys: string[] } | null;
  schema?: { fields: Schemas["FieldReport"][] } | null;
  statistics?: {
    file_count: number;
    total_size_bytes: number;
    total_size_exact: boolean;
    row_count: number | null;
    row_count_exact: boolean;
    last_modified: string | null;
    alternating: boolean;
    columns: Record<string, ColumnStatistics>;
  } | null;
  drift?: {
    shape: string;
    file_count: number;
    examples?: string[];
    differences?: string[];
    first_seen?: string | null;
    last_seen?: string | null;
  }[];
  lineage?: { upstream?: { urn: string }[]; downstream?: { urn: string }[] } | null;
  ownership?: { owners: { name: string; kind?: string; type?: string }[] } | null;
  governance?: { tags?: string[]; terms?: string[]; compliance?: string[] } | null;
  documentation?: { description?: string | null; business_context?: string | null; domain?: string | null } | null;
  properties?: Record<string, string> | null;
  versioning?: { cloud_version: string; schema_version: string } | null;
  quality?: {
    columns?: Record<string, { null_share?: number; distinct_count?: number; histogram?: number[] }>;
  } | null;
  flags?: string[];
}
