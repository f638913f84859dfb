-- Keys of servers that call the chat (`dash chat-key`). A number is never used again, since turns are counted by it.
CREATE TABLE chat_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  -- SHA-256 of the key, in hex; the key itself is not stored
  digest TEXT NOT NULL UNIQUE,
  per_day INTEGER NOT NULL,
  per_minute INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;
--> statement-breakpoint
-- The name of a revoked key may be given again.
CREATE UNIQUE INDEX chat_keys_by_name ON chat_keys (name) WHERE revoked_at IS NULL;
