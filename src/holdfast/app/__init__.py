"""The composition root: the only place that constructs adapters and hands them to the engine."""
