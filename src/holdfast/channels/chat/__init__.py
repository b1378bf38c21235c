"""Chat channels: what every platform's folder shares.  `port.py` has what a platform implements."""
