-- The random salt of a UTC day, under which the callers of that day are known. Without it their hashes tell nothing.
CREATE TABLE chat_salts (
  day TEXT PRIMARY KEY,
  salt BLOB NOT NULL CHECK (length(salt) = 32)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
-- One row a turn, from its admission on. Rows go with the salt of their day.
CREATE TABLE chat_turns (
  id TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  address TEXT NOT NULL,
  server TEXT NOT NULL,
  -- the UTC day of the admission, which is the day charged
  day TEXT NOT NULL,
  admitted_at INTEGER NOT NULL,
  -- micro-dollars
  reserved INTEGER NOT NULL CHECK (reserved >= 0),
  lease_until INTEGER NOT NULL,
  settled_at INTEGER,
  -- micro-dollars; null until it is settled
  cost INTEGER CHECK (cost >= 0)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX chat_turns_by_session ON chat_turns (session, admitted_at);
--> statement-breakpoint
CREATE INDEX chat_turns_by_address ON chat_turns (address, admitted_at, day);
--> statement-breakpoint
CREATE INDEX chat_turns_by_day ON chat_turns (day);
--> statement-breakpoint
CREATE INDEX chat_turns_open ON chat_turns (server, lease_until, day, reserved) WHERE settled_at IS NULL;
--> statement-breakpoint
-- What the turns of a day cost and hold reserved: always the sums over its turns while those are kept.
CREATE TABLE chat_days (
  day TEXT PRIMARY KEY,
  settled INTEGER NOT NULL CHECK (settled >= 0),
  reserved INTEGER NOT NULL CHECK (reserved >= 0)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
-- Tries to prove to be human. A row is of use for a minute.
CREATE TABLE chat_verifications (
  id INTEGER PRIMARY KEY,
  address TEXT NOT NULL,
  tried_at INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX chat_verifications_by_address ON chat_verifications (address, tried_at);
--> statement-breakpoint
CREATE INDEX chat_verifications_by_time ON chat_verifications (tried_at);
--> statement-breakpoint
-- Answers that may be given again, by the digest of everything that shaped them.
CREATE TABLE chat_answers (
  key TEXT PRIMARY KEY,
  stored_at INTEGER NOT NULL,
  -- length of the text
  bytes INTEGER NOT NULL,
  -- SHA-256 over key, time and text: a row that was damaged is no answer
  digest BLOB NOT NULL,
  -- UTF-8
  text BLOB NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX chat_answers_by_time ON chat_answers (stored_at, key, bytes);
