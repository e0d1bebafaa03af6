"""The REST API under /api/v1: one file per concern, every shape in `models.py`."""
