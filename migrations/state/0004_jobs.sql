-- One row a job: how its last run ended, and when one last ended with 0.
CREATE TABLE jobs (
  job TEXT PRIMARY KEY,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  exit_code INTEGER NOT NULL,
  last_success_at INTEGER
) STRICT, WITHOUT ROWID;
