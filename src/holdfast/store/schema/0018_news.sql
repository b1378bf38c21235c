-- What the operator is told by itself, once: each fact is marked in the transaction that writes the message about it.
CREATE TABLE news (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    -- When the last message was written, because many facts that become known together are one message.
    told_at BIGINT NOT NULL
) /*strict*/;

-- 1 for a node that stopped without leaving, until that is reported.
ALTER TABLE nodes ADD COLUMN crashed BIGINT NOT NULL DEFAULT 0 CHECK (crashed IN (0, 1));
-- What a node found that others had left behind, until the operator is told.
ALTER TABLE nodes ADD COLUMN found TEXT;
CREATE INDEX nodes_crashed ON nodes (id) WHERE crashed = 1;
CREATE INDEX nodes_found ON nodes (joined_at, id) WHERE found IS NOT NULL;

-- When the operator was told that a delivery was given up.
ALTER TABLE deliveries ADD COLUMN told_at BIGINT;
UPDATE deliveries SET told_at = 0 WHERE state IN ('failed', 'expired');
CREATE INDEX deliveries_untold ON deliveries (settled_at) WHERE state IN ('failed', 'expired') AND told_at IS NULL;

-- When the operator was told what became of an instant, or there was nothing to tell.
ALTER TABLE slots ADD COLUMN told_at BIGINT;
UPDATE slots SET told_at = 0;
CREATE INDEX slots_untold ON slots (instant) WHERE told_at IS NULL;

-- What keeps an account from receiving, since when, and whether the operator was told.
ALTER TABLE channel_accounts ADD COLUMN trouble TEXT NOT NULL DEFAULT '';
ALTER TABLE channel_accounts ADD COLUMN trouble_at BIGINT;
ALTER TABLE channel_accounts ADD COLUMN trouble_told BIGINT NOT NULL DEFAULT 0 CHECK (trouble_told IN (0, 1));
CREATE INDEX channel_accounts_troubled ON channel_accounts (name) WHERE trouble_at IS NOT NULL;
