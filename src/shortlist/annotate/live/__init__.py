"""A model that is trained on the answers as they come and chooses the shortlists.

`plan` is what an owner can set, `trainer` the process that learns, `supervisor` the thread of the server that watches
it, `chooser` what the queue asks. `items` and `answer_log` read a project for the trainer. Nothing here needs torch.
"""
