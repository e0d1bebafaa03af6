"""Which items to ask next, and which shortlists: policies, the labelling loop, its simulation and its plan.

`choose`, `noise`, `beliefs`, `state`, `items`, `lbfgs`, `linear`, `loop` and `live` need numpy only, `time_model` scipy
where it fits; `features` and `simulate` need scikit-learn; `propensity` loads torch when it is called.
"""
