-- Punctuation separates words, as it does for SQLite: PostgreSQL alone would take a URL or a path for one word.
-- The cut keeps a huge answer below the size that a tsvector may have.
CREATE FUNCTION searchable(text TEXT) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('simple', translate(left(text, 200000), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
$$;
CREATE INDEX entries_search ON entries USING gin (searchable(data ->> 'text'))
    WHERE kind IN ('turn.accepted', 'turn.completed');
