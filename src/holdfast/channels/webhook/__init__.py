"""Webhooks: who signed a delivery, what is in it, and what the agent is told about it."""
