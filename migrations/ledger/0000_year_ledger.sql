-- The versioned ledger: publications, gaps and the seal over the legacy ledger, chained by leaf hashes.
-- Columns and their order are covered by the leaf (src/domain/year/chain.ts).
CREATE TABLE entries (
  seq INTEGER PRIMARY KEY CHECK (seq >= 1),
  kind TEXT NOT NULL CHECK (kind IN ('publication', 'gap', 'legacy-seal')),
  recorded_at INTEGER NOT NULL,
  as_of_day TEXT,
  publication_id TEXT UNIQUE,
  algorithm_version TEXT,
  schema_version INTEGER,
  envelope_kind TEXT,
  window_start INTEGER,
  window_end INTEGER,
  generated_at INTEGER,
  published_at INTEGER,
  sha256 TEXT,
  byte_size INTEGER,
  reason TEXT,
  attempts INTEGER,
  legacy_rows INTEGER,
  legacy_digest TEXT,
  previous_leaf TEXT NOT NULL,
  leaf TEXT NOT NULL UNIQUE
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX entries_own_day ON entries (as_of_day)
  WHERE kind = 'gap' OR algorithm_version = 'top-year-v3';
--> statement-breakpoint
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'ledger entries are immutable'); END;
--> statement-breakpoint
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'ledger entries are permanent'); END;
--> statement-breakpoint
-- INSERT OR REPLACE passes delete triggers, so an insert over a row is refused before it happens.
CREATE TRIGGER entries_no_replace BEFORE INSERT ON entries
WHEN EXISTS (
  SELECT 1 FROM entries
  WHERE seq = NEW.seq OR leaf = NEW.leaf OR publication_id = NEW.publication_id
    OR (as_of_day = NEW.as_of_day AND (kind = 'gap' OR algorithm_version = 'top-year-v3')
      AND (NEW.kind = 'gap' OR NEW.algorithm_version = 'top-year-v3'))
)
BEGIN SELECT RAISE(ABORT, 'a ledger entry is already there'); END;
--> statement-breakpoint
CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM entries)
BEGIN SELECT RAISE(ABORT, 'ledger entries follow one another'); END;
--> statement-breakpoint
-- The preserved ledger of version-1 publications: filled once, then sealed.
CREATE TABLE legacy_publications (
  position INTEGER PRIMARY KEY CHECK (position >= 1),
  publication_id TEXT NOT NULL UNIQUE,
  algorithm_version TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  envelope_kind TEXT NOT NULL,
  as_of_day TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  window_end INTEGER NOT NULL,
  generated_at INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  byte_size INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TRIGGER legacy_no_update BEFORE UPDATE ON legacy_publications
BEGIN SELECT RAISE(ABORT, 'legacy publications are immutable'); END;
--> statement-breakpoint
CREATE TRIGGER legacy_no_delete BEFORE DELETE ON legacy_publications
BEGIN SELECT RAISE(ABORT, 'legacy publications are permanent'); END;
--> statement-breakpoint
CREATE TRIGGER legacy_closed BEFORE INSERT ON legacy_publications
WHEN EXISTS (SELECT 1 FROM entries)
  OR EXISTS (SELECT 1 FROM legacy_publications WHERE position = NEW.position OR publication_id = NEW.publication_id)
BEGIN SELECT RAISE(ABORT, 'the legacy ledger is closed'); END;
--> statement-breakpoint
-- Attempts are counted before any work and never uncounted; only how one ended is written afterwards, once.
CREATE TABLE attempts (
  as_of_day TEXT NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt BETWEEN 1 AND 3),
  started_at INTEGER NOT NULL,
  failed_at INTEGER,
  reason TEXT,
  PRIMARY KEY (as_of_day, attempt)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TRIGGER attempts_end_once BEFORE UPDATE ON attempts
WHEN OLD.failed_at IS NOT NULL OR NEW.as_of_day <> OLD.as_of_day OR NEW.attempt <> OLD.attempt
  OR NEW.started_at <> OLD.started_at
BEGIN SELECT RAISE(ABORT, 'a counted attempt is permanent'); END;
--> statement-breakpoint
CREATE TRIGGER attempts_no_delete BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'a counted attempt is permanent'); END;
--> statement-breakpoint
CREATE TRIGGER attempts_no_replace BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM attempts WHERE as_of_day = NEW.as_of_day AND attempt = NEW.attempt)
BEGIN SELECT RAISE(ABORT, 'that attempt is already counted'); END;
--> statement-breakpoint
-- One publisher at a time: at most one row.
CREATE TABLE lease (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  token TEXT NOT NULL,
  holder TEXT NOT NULL,
  process TEXT,
  taken_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
