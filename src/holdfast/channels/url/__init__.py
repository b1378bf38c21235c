"""Web addresses: `url:https://…` gets each part as signed JSON."""
