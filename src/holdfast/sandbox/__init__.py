"""Containment: what a command may see, where it may write, and which hosts it may reach."""

from holdfast.sandbox.box import INSTALL, Choice, Sandbox, SandboxKind
from holdfast.sandbox.configured import server_profile, terminal_profile
from holdfast.sandbox.environment import scrubbed
from holdfast.sandbox.profile import Limits, Profile, profile

__all__ = [
    "INSTALL",
    "Choice",
    "Limits",
    "Profile",
    "Sandbox",
    "SandboxKind",
    "profile",
    "scrubbed",
    "server_profile",
    "terminal_profile",
]
