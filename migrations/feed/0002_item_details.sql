-- What a source says of an item beside its daily numbers. The newest reading wins; a file of signals holds none.
CREATE TABLE item_details (
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  author TEXT,
  -- JSON array of strings
  tags TEXT NOT NULL,
  description TEXT,
  collected_at INTEGER NOT NULL,
  PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;
