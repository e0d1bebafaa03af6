"""The REST API under /api/v1: one file a concern, every shape in `models.py`."""
