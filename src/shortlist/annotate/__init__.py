"""The annotation app: people answer shortlists in a browser; nothing is lost, nobody gets in who should not.

store (schema, migrations, transactions) -> queue (lease, answer, undo) -> api and pages -> app -> serve. The shortlist
of a question comes from a `chooser.Chooser`. Nothing here imports torch.
"""
