-- A word and all that begin with it stand together, whatever the language of the database.
ALTER TABLE memory_words ALTER COLUMN word TYPE TEXT COLLATE "C";
