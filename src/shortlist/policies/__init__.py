"""Which items to ask next, and which shortlists: policies, the labelling loop, its simulation and its plan.

`choose`, `noise`, `beliefs`, `state` and `items` need numpy only, `linear`, `loop`, `live` and, where it fits,
`time_model` scipy; `features` and `simulate` need scikit-learn.
"""
