"""The engine: components that move turns along, each an `async def run()` under one supervisor."""
