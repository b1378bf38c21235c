"""Rules are pure, so how long one example takes says nothing about them; only the machine could miss a deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unit", deadline=None)
settings.register_profile("deep", deadline=None, max_examples=5_000)
# Whoever asks for another, as in `pytest tests/unit --hypothesis-profile deep`, gets it.
if settings.get_current_profile_name() == "default":
    settings.load_profile("unit")
