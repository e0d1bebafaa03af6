"""Learning rate and weight decay of every line of the demo, fixed before any test item was scored. Placeholder."""

from shortlist.demo.lines import Line, Settings

CHOSEN: dict[Line, Settings] = {}
