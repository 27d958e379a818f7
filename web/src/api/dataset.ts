/** What `lumos show` returns for a dataset: the aspects that pages read. */
import type { Schemas } from "./client";

export interface ColumnStatistics {
  null_count?: number | null;
  compressed_bytes?: number | null;
  minimum?: string | null;
  maximum?: string | null;
}

/** What `lumos profile` measured of a column; values only as far as privacy rules allow. */
export interface ColumnProfile {
  nulls?: number;
  nans?: number;
  misfits?: number;
  distinct?: number | null;
  minimum?: string | null;
  maximum?: string | null;
  mean?: string | null;
  quantiles?: Record<string, string>;
  top?: { value: string; count: number }[];
  shortest?: number | null;
  longest?: number | null;
}

export interface Profile {
  measured_at: string;
  rows: number;
  files?: number;
  unread?: number;
  sampled?: number | null;
  columns?: Record<string, ColumnProfile>;
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
    score?: number | null;
    measured_at?: string | null;
    checks?: { name: string; status: "PASSED" | "WARNING" | "FAILED"; details?: string | null }[];
    profile?: Profile | null;
  } | null;
  flags?: string[];
}
