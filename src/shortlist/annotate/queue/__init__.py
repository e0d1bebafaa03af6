"""Who is asked what next, and what an answer changes."""
