"""Campaigns: many histories, in one process or several, and what they reached."""
