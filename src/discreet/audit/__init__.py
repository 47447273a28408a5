"""Audits and attacks: what a released model gives away at least, next to what is certified at most."""
