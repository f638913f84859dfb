-- The evaluation of a day follows from the results of its requests, which say all that these tables repeated.
DROP TABLE evaluation_scores;
--> statement-breakpoint
DROP TABLE evaluation_rejections;
--> statement-breakpoint
ALTER TABLE evaluation_attempts DROP COLUMN run;
