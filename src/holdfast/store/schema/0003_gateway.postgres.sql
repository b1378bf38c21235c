-- The banner of a stop is the part -n of attempt n: at most one per attempt and target, as with every other part.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_part_check;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_part_check CHECK (part <> 0);
