CREATE INDEX memories_search ON memories USING gin (searchable(text));
