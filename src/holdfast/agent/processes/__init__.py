"""Background commands: kept alive and accounted for beyond the life of the gateway."""
