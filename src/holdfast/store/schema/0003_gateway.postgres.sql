-- Part 0 of a turn's deliveries is the banner of a stop: at most one per turn and target, like every other part.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_part_check;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_part_check CHECK (part >= 0);
