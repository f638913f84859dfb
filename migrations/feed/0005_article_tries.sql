-- Items whose text could not be read, and when to try again. Gone with the item's first text.
CREATE TABLE article_tries (
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  tries INTEGER NOT NULL,
  reason TEXT NOT NULL,
  tried_at INTEGER NOT NULL,
  -- null: never
  next_try_at INTEGER,
  PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;
