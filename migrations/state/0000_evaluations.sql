-- One row a run of `evaluate-models`. A run that was killed has no end of its own: the next one gives it one.
CREATE TABLE evaluation_runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  day TEXT NOT NULL,
  refresh_mode TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT,
  ranking_version TEXT,
  -- requests a minute the run learned to keep to; null when it never met the limit
  starts_a_minute INTEGER,
  reason TEXT
) STRICT;
--> statement-breakpoint
-- One row a request to a model, written before it is sent: whatever happens to the run, it counts.
CREATE TABLE evaluation_attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL,
  model TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('tool', 'text')),
  day TEXT NOT NULL,
  sent_at INTEGER NOT NULL,
  settled_at INTEGER,
  -- what the answer meant (src/domain/models/answer-class.ts)
  class TEXT,
  status INTEGER,
  latency_ms INTEGER,
  -- 1 when the reply had the form that was asked for
  as_asked INTEGER,
  -- JSON array of the graded tasks
  tasks TEXT
) STRICT;
--> statement-breakpoint
CREATE INDEX evaluation_attempts_by_day ON evaluation_attempts (day, model);
--> statement-breakpoint
CREATE INDEX evaluation_attempts_by_time ON evaluation_attempts (sent_at);
--> statement-breakpoint
-- The evaluation of a model on a UTC day. A complete one is not replaced by one that lacks an answer.
CREATE TABLE evaluation_scores (
  model TEXT NOT NULL,
  day TEXT NOT NULL,
  evaluated_at INTEGER NOT NULL,
  complete INTEGER NOT NULL,
  points INTEGER NOT NULL,
  tasks TEXT NOT NULL,
  PRIMARY KEY (model, day)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
-- Why each other model of the catalogue was no candidate.
CREATE TABLE evaluation_rejections (
  run INTEGER NOT NULL,
  model TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (run, model)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE evaluation_lease (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  token TEXT NOT NULL,
  holder TEXT NOT NULL,
  process TEXT,
  taken_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
