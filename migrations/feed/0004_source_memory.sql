-- Answers of sources that came with validators, so that an unchanged one need not be sent again. Short-lived.
CREATE TABLE kept_answers (
  url TEXT PRIMARY KEY,
  etag TEXT,
  last_modified TEXT,
  body TEXT NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
-- Hosts of sources that asked to be left alone for longer than a run waits.
CREATE TABLE source_pauses (
  host TEXT PRIMARY KEY,
  paused_until INTEGER NOT NULL
) STRICT;
