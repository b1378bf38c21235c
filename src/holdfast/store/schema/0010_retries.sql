-- What a request without a key is known by when its client repeats it: a digest of who sent which body where, and the
-- highest number of a try that the turn has answered to.  The digest goes once the client has read the answer.
ALTER TABLE turns ADD COLUMN request_digest TEXT;
ALTER TABLE turns ADD COLUMN request_tries BIGINT NOT NULL DEFAULT 0;
CREATE INDEX turns_retryable ON turns (request_digest) WHERE request_digest IS NOT NULL;
