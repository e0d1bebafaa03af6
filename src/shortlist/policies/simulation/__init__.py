"""The labelling loop on labelled data, its answers simulated."""
