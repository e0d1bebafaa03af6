"""What is not for users: small helpers that every room may use, and that may change without notice.

The modules are imported by their own names (`from shortlist.internal.files import atomic_write`), so that none of them
makes another heavy.
"""
