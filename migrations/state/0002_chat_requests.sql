-- One row a request of the chat to the routing service, written before it is sent. The account's requests of a day are
-- counted over these and evaluation_attempts.
CREATE TABLE chat_router_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  sent_at INTEGER NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX chat_router_requests_by_day ON chat_router_requests (day);
--> statement-breakpoint
CREATE INDEX chat_router_requests_by_time ON chat_router_requests (sent_at);
--> statement-breakpoint
-- What the service last said of each model's endpoints, when it was asked for nothing else.
CREATE TABLE evaluation_endpoints (
  model TEXT PRIMARY KEY,
  checked_at INTEGER NOT NULL,
  usable INTEGER NOT NULL,
  latency_ms INTEGER
) STRICT, WITHOUT ROWID;
