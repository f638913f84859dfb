-- Where the chain of an imported archive stands before its seal, written before the import is committed: at most one row.
CREATE TABLE founding (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  seq INTEGER NOT NULL CHECK (seq >= 1),
  leaf TEXT NOT NULL,
  began_at INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TRIGGER founding_no_update BEFORE UPDATE ON founding
BEGIN SELECT RAISE(ABORT, 'a founding is permanent'); END;
--> statement-breakpoint
CREATE TRIGGER founding_no_delete BEFORE DELETE ON founding
BEGIN SELECT RAISE(ABORT, 'a founding is permanent'); END;
--> statement-breakpoint
CREATE TRIGGER founding_first BEFORE INSERT ON founding
WHEN EXISTS (SELECT 1 FROM founding) OR EXISTS (SELECT 1 FROM entries)
BEGIN SELECT RAISE(ABORT, 'the ledger is founded'); END;
--> statement-breakpoint
-- A founding that was begun is the only one that can be written.
CREATE TRIGGER entries_as_founded BEFORE INSERT ON entries
WHEN EXISTS (
  SELECT 1 FROM founding
  WHERE (NEW.seq <= seq AND NEW.kind <> 'publication')
    OR (NEW.seq = seq AND NEW.leaf <> leaf)
    OR (NEW.seq = seq + 1 AND NEW.kind <> 'legacy-seal')
)
BEGIN SELECT RAISE(ABORT, 'another founding was begun'); END;
