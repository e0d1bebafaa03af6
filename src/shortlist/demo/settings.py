"""Learning rate and weight decay of every line of the demo, fixed before any test item was scored.

Chosen by `python -m shortlist.demo.choose`: accuracy on held-out answered training items, with seeds the demo does not
use, from learning rates 0.003 to 0.3 and weight decays 1e-4 to 1e-2. Never by test accuracy. The scores behind each
choice are in results/demo-choice.json, and a test holds this table to them.
"""

from shortlist.demo.rows import Line, Settings

CHOSEN: dict[Line, Settings] = {
    Line("ol", kind="all items"): Settings(0.3, 0.001),
    Line("ol", 3, kind="same reads"): Settings(0.3, 0.001),
    Line("sl", 3): Settings(0.03, 0.001),
    Line("likelihood", 3): Settings(0.3, 0.01),
    Line("cc", 3, "paper"): Settings(0.1, 0.0001),
    Line("cc", 3, "fair"): Settings(0.3, 0.01),
    Line("rc", 3, "paper"): Settings(0.1, 0.0001),
    Line("rc", 3, "fair"): Settings(0.3, 0.0001),
    Line("ol", 5, kind="same reads"): Settings(0.3, 0.001),
    Line("sl", 5): Settings(0.03, 0.001),
    Line("likelihood", 5): Settings(0.3, 0.001),
    Line("cc", 5, "paper"): Settings(0.3, 0.001),
    Line("cc", 5, "fair"): Settings(0.3, 0.001),
    Line("rc", 5, "paper"): Settings(0.3, 0.001),
    Line("rc", 5, "fair"): Settings(0.3, 0.0001),
}
