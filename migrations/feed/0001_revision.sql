-- One number that grows with every import that changed something: an engine without reading transactions reads it
-- before and after, to know that what it read in several statements belongs together.
CREATE TABLE revision (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  number INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
INSERT INTO revision (id, number) VALUES (1, 0);
