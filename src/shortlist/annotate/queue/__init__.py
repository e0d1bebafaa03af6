"""Who is asked what next, and what an answer changes.

`queue` is what annotators do (next, answer, skip, undo), each one transaction; `leases` gives out questions and takes
them back; `chooser` is the interface to the policies; `gold` makes the lists of gold questions.
"""
