-- The text of an item, and where and when it was read. Not in the clustered tables: texts are long.
CREATE TABLE articles (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  text TEXT NOT NULL,
  provenance TEXT NOT NULL,
  fetched_at INTEGER NOT NULL,
  UNIQUE (source, source_id)
) STRICT;
