-- How far the clock of the newest run of `collect` was from the sources that it read; at most one row.
CREATE TABLE clock_check (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  checked_at INTEGER NOT NULL,
  ahead_ms INTEGER NOT NULL,
  sources INTEGER NOT NULL
) STRICT;
