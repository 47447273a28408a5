"""Certified accounting of selective release: gates, choices between candidates, private memory."""
