"""Proofs of what all chat platforms share."""
