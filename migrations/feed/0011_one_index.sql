-- One set of index tables, written with the rows that they index. A feed with events has to be indexed again.
DROP TRIGGER signals_mark_new;
--> statement-breakpoint
DROP TRIGGER signals_mark_changed;
--> statement-breakpoint
DROP TRIGGER articles_mark_new;
--> statement-breakpoint
DROP TRIGGER articles_mark_changed;
--> statement-breakpoint
DROP TRIGGER articles_mark_gone;
--> statement-breakpoint
DROP TABLE search_pending;
--> statement-breakpoint
DROP TABLE search_counts_a;
--> statement-breakpoint
DROP TABLE search_counts_b;
--> statement-breakpoint
DROP TABLE search_titles_a;
--> statement-breakpoint
DROP TABLE search_titles_b;
--> statement-breakpoint
DROP TABLE search_texts_a;
--> statement-breakpoint
DROP TABLE search_texts_b;
--> statement-breakpoint
DROP TABLE search_documents_a;
--> statement-breakpoint
DROP TABLE search_documents_b;
--> statement-breakpoint
DROP TABLE search_state;
--> statement-breakpoint
CREATE TABLE search_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- grows with every write to the index
  step INTEGER NOT NULL,
  -- the rules by which the words of the index were cut
  format INTEGER NOT NULL,
  -- 0 while events are missing: before and during a rebuild
  complete INTEGER NOT NULL CHECK (complete IN (0, 1)),
  -- the next item's number
  next_number INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
INSERT INTO search_state (id, step, format, complete, next_number)
SELECT 1, 0, 3, NOT EXISTS (SELECT 1 FROM events), 1;
--> statement-breakpoint
-- One row an event. The id is its day, shifted, and its number: ids are in order of time, and a range of them is a time.
CREATE TABLE search_documents (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  title TEXT NOT NULL,
  url TEXT,
  -- the canonical URL
  page TEXT,
  first_day TEXT NOT NULL,
  last_day TEXT NOT NULL,
  published_at INTEGER,
  points INTEGER,
  comments INTEGER,
  UNIQUE (source, source_id)
) STRICT;
--> statement-breakpoint
CREATE INDEX search_documents_by_page ON search_documents (page) WHERE page IS NOT NULL;
--> statement-breakpoint
-- Words are cut before they come here, and joined by spaces.
CREATE VIRTUAL TABLE search_titles USING fts5 (
  words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = 'ascii tokenchars ''+#'''
);
--> statement-breakpoint
-- Title and text of the events that have a text: in one table with the others, long texts would hide their own titles.
CREATE VIRTUAL TABLE search_texts USING fts5 (
  words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = 'ascii tokenchars ''+#'''
);
--> statement-breakpoint
CREATE VIRTUAL TABLE search_counts USING fts5vocab (search_titles, row);
