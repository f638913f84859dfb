-- The index of a feed without events follows the eighth version of the rules, which identify more pages; others wait for a rebuild.
UPDATE search_state SET format = 8 WHERE NOT EXISTS (SELECT 1 FROM events);
