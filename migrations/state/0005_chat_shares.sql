-- The /48 of an IPv6 address, under the salt of the day like the address itself; null for IPv4.
ALTER TABLE chat_turns ADD COLUMN network TEXT;
--> statement-breakpoint
-- What an address and a /48 hold and have spent. Turns that cost nothing are left out, since there may be any number of them.
CREATE INDEX chat_turns_paid_by_address ON chat_turns (address, day, cost, reserved) WHERE cost IS NULL OR cost > 0;
--> statement-breakpoint
CREATE INDEX chat_turns_paid_by_network ON chat_turns (network, day, cost, reserved)
  WHERE network IS NOT NULL AND (cost IS NULL OR cost > 0);
--> statement-breakpoint
-- The turn that sent the request: its address and its /48 have shares of the account's requests of a day.
ALTER TABLE chat_router_requests ADD COLUMN turn TEXT;
--> statement-breakpoint
CREATE INDEX chat_router_requests_by_turn ON chat_router_requests (turn);
