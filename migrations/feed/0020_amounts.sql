-- The index of a feed without events follows the twelfth version of the rules of words; others wait for a rebuild.
UPDATE search_state SET format = 12 WHERE NOT EXISTS (SELECT 1 FROM events);
