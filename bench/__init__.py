"""Benchmarks: what Holdfast does beside what the same machine does without it, measured in the same run."""
