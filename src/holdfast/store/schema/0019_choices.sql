-- The messages of a chat with buttons, where a number that a person writes stands for a button.
CREATE INDEX deliveries_with_extra ON deliveries (target, number) WHERE extra <> '{}';
