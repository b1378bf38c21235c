-- The cut keeps a huge answer below the size that a tsvector may have.
CREATE INDEX entries_search ON entries USING gin (to_tsvector('simple', left(data ->> 'text', 200000)))
    WHERE kind IN ('turn.accepted', 'turn.completed');
