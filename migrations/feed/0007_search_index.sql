-- The search index: two sets of tables, a and b, of which one answers while the other is rebuilt. All of it is made of
-- signals and articles, and can be made again (docs/search.md).

-- Events whose signals or article changed since the index took them in; every way to write marks them.
CREATE TABLE search_pending (
  source TEXT NOT NULL,
  source_id TEXT NOT NULL,
  -- grows with every change, so that what was read is told from what came after
  mark INTEGER NOT NULL,
  PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO search_pending (source, source_id, mark) SELECT source, source_id, 1 FROM events;
--> statement-breakpoint
CREATE TRIGGER signals_mark_new AFTER INSERT ON signals
BEGIN
  INSERT INTO search_pending (source, source_id, mark) VALUES (NEW.source, NEW.source_id, 1)
  ON CONFLICT (source, source_id) DO UPDATE SET mark = mark + 1;
END;
--> statement-breakpoint
CREATE TRIGGER signals_mark_changed AFTER UPDATE ON signals
BEGIN
  INSERT INTO search_pending (source, source_id, mark) VALUES (NEW.source, NEW.source_id, 1)
  ON CONFLICT (source, source_id) DO UPDATE SET mark = mark + 1;
END;
--> statement-breakpoint
CREATE TRIGGER articles_mark_new AFTER INSERT ON articles
BEGIN
  INSERT INTO search_pending (source, source_id, mark) VALUES (NEW.source, NEW.source_id, 1)
  ON CONFLICT (source, source_id) DO UPDATE SET mark = mark + 1;
END;
--> statement-breakpoint
CREATE TRIGGER articles_mark_changed AFTER UPDATE OF text ON articles
BEGIN
  INSERT INTO search_pending (source, source_id, mark) VALUES (NEW.source, NEW.source_id, 1)
  ON CONFLICT (source, source_id) DO UPDATE SET mark = mark + 1;
END;
--> statement-breakpoint
CREATE TRIGGER articles_mark_gone AFTER DELETE ON articles
BEGIN
  INSERT INTO search_pending (source, source_id, mark) VALUES (OLD.source, OLD.source_id, 1)
  ON CONFLICT (source, source_id) DO UPDATE SET mark = mark + 1;
END;
--> statement-breakpoint
CREATE TABLE search_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- grows with every write to the index: who read another step writes nothing
  step INTEGER NOT NULL,
  -- the set that answers, and by which rules its words were cut
  active TEXT NOT NULL CHECK (active IN ('a', 'b')),
  format INTEGER NOT NULL,
  -- the next item's number
  next_number INTEGER NOT NULL,
  -- the rebuild under way, and how far it came
  build INTEGER,
  after_source TEXT NOT NULL,
  after_source_id TEXT NOT NULL
) STRICT;
--> statement-breakpoint
INSERT INTO search_state (id, step, active, format, next_number, build, after_source, after_source_id)
VALUES (1, 0, 'a', 1, 1, NULL, '', '');
--> statement-breakpoint
-- The ranks of a day, without reading what else was observed.
CREATE INDEX signals_by_day ON signals (source, day, points);
--> statement-breakpoint
-- One row an event. The id is its day, shifted, and its number: ids are in order of time, and a range of them is a time.
CREATE TABLE search_documents_a (
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
  -- digest of the words in the two tables below
  words TEXT NOT NULL,
  UNIQUE (source, source_id)
) STRICT;
--> statement-breakpoint
CREATE INDEX search_documents_a_by_page ON search_documents_a (page);
--> statement-breakpoint
-- Words are cut before they come here, and joined by spaces.
CREATE VIRTUAL TABLE search_titles_a USING fts5 (
  words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = 'ascii tokenchars ''+#'''
);
--> statement-breakpoint
-- Title and text of the events that have a text: in one table with the others, long texts would hide their own titles.
CREATE VIRTUAL TABLE search_texts_a USING fts5 (
  words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = 'ascii tokenchars ''+#'''
);
--> statement-breakpoint
CREATE VIRTUAL TABLE search_counts_a USING fts5vocab (search_titles_a, row);
--> statement-breakpoint
-- One row an event. The id is its day, shifted, and its number: ids are in order of time, and a range of them is a time.
CREATE TABLE search_documents_b (
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
  -- digest of the words in the two tables below
  words TEXT NOT NULL,
  UNIQUE (source, source_id)
) STRICT;
--> statement-breakpoint
CREATE INDEX search_documents_b_by_page ON search_documents_b (page);
--> statement-breakpoint
-- Words are cut before they come here, and joined by spaces.
CREATE VIRTUAL TABLE search_titles_b USING fts5 (
  words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = 'ascii tokenchars ''+#'''
);
--> statement-breakpoint
-- Title and text of the events that have a text: in one table with the others, long texts would hide their own titles.
CREATE VIRTUAL TABLE search_texts_b USING fts5 (
  words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = 'ascii tokenchars ''+#'''
);
--> statement-breakpoint
CREATE VIRTUAL TABLE search_counts_b USING fts5vocab (search_titles_b, row);
