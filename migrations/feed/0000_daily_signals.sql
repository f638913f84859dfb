-- One observation of one event on one UTC day; no day is ever deleted.
-- Clustered by event, so that an event's latest signal up to a day is one seek.
CREATE TABLE signals (
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  day TEXT NOT NULL,
  title TEXT NOT NULL,
  url TEXT,
  points INTEGER,
  comments INTEGER,
  published_at INTEGER,
  title_provenance TEXT,
  PRIMARY KEY (source, source_id, day)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TRIGGER signals_no_delete BEFORE DELETE ON signals
BEGIN SELECT RAISE(ABORT, 'daily signals are kept for ever'); END;
--> statement-breakpoint
-- One row an event: the reach of its signals in time. Publishing reads only the events a window can hold.
CREATE TABLE events (
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  first_day TEXT NOT NULL,
  last_day TEXT NOT NULL,
  earliest_published_at INTEGER,
  latest_published_at INTEGER,
  PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX events_by_publication ON events (latest_published_at, source, source_id, earliest_published_at);
--> statement-breakpoint
CREATE INDEX events_by_last_day ON events (last_day, first_day, source);
--> statement-breakpoint
-- The days each source was observed on, for coverage.
CREATE TABLE source_days (
  day TEXT NOT NULL,
  source TEXT NOT NULL,
  PRIMARY KEY (day, source)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
-- Titles asked of their owning source, each once.
CREATE TABLE verified_titles (
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  title TEXT NOT NULL,
  provenance TEXT NOT NULL,
  verified_at INTEGER NOT NULL,
  PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;
