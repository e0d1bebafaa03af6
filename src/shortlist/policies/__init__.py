"""Which items to ask next, and which shortlists: policies, the labelling loop, its simulation and its plan.

`choose`, `noise`, `beliefs`, `state`, `items`, `time_model` need numpy only; `loop`, `linear` and `live` also scipy;
`propensity` loads torch when it is called.
"""
