-- What the page shows: sessions that somebody has pinned stand apart, and are few among many.
CREATE INDEX sessions_pinned ON sessions (owner, updated_at, id) WHERE pinned = 1;
