"""A scripted Telegram: the Bot API over HTTP, and people with phones.  The drill, the benchmarks and the tests share it."""
