-- What a node knows of the time: how far the clock of its machine is off, and what time it was when the machine was started,
-- so that another process of the same start is not deceived by a clock that was set in between.
ALTER TABLE nodes ADD COLUMN clock_off_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN boot TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN boot_clock_ms BIGINT;
-- The newest instant whose slot was forgotten: no job goes back to where nobody could tell any more what it has fired.
ALTER TABLE jobs ADD COLUMN forgotten BIGINT NOT NULL DEFAULT 0;
