-- One row a run over the live periods; feeds is a JSON array of [sort, sha256, byte size].
CREATE TABLE snapshots (
  id TEXT PRIMARY KEY,
  generated_at INTEGER NOT NULL,
  feeds TEXT NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX snapshots_by_time ON snapshots (generated_at, id);
--> statement-breakpoint
-- The payloads as they are served, in parts: a server takes no parameter, and gives no answer, of any length.
CREATE TABLE snapshot_feeds (
  snapshot_id TEXT NOT NULL,
  sort TEXT NOT NULL,
  part INTEGER NOT NULL,
  payload BLOB NOT NULL,
  PRIMARY KEY (snapshot_id, sort, part)
) STRICT;
