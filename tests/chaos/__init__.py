"""Faults of every kind at real gateways with many clients, and a checker that judges by what was seen from outside."""
