"""Telegram: bots that people write to in private chats, groups and topics."""
