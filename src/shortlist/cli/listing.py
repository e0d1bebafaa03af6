"""`shortlist methods`, `models` and `datasets`: lists of what there is."""

from shortlist.cli.options import AsJson, print_json, print_table


def methods(json: AsJson = False) -> None:
    """The methods that `train --method` knows.

    Your own goes as module:Class.

    Example: shortlist methods
    """
    import dataclasses

    from shortlist.methods import METHODS

    rows = []
    for name, method in METHODS.items():
        options = {
            field.name: field.default
            for field in dataclasses.fields(method)  # type: ignore[arg-type]
            if field.default is not dataclasses.MISSING
        }
        rows.append({"name": name, "title": method.title, "baseline": method.baseline, "options": options})
    if json:
        print_json({"methods": rows})
        return
    print_table(
        ("method", "what", "options (--method-option)"),
        [
            (row["name"], row["title"], " ".join(f"{k}={v}" for k, v in row["options"].items()))  # type: ignore[attr-defined]
            for row in rows
        ],
    )


def models(json: AsJson = False) -> None:
    """The networks that `train --model` knows.

    Your own goes as package.module:function.

    Example: shortlist models
    """
    from shortlist.models import describe

    if json:
        print_json({"models": [row._asdict() for row in describe()]})
        return
    print_table(("model", "what", "parameters"), describe())


def datasets(json: AsJson = False) -> None:
    """The datasets known by name, and which are on this machine.

    Example: shortlist datasets
    """
    from shortlist.data import describe

    rows = describe()
    if json:
        print_json({"datasets": [row._asdict() for row in rows]})
        return
    print_table(
        ("dataset", "what", "kind", "classes", "train", "test", "here"),
        [
            (r.name, r.what, r.kind, r.num_classes, f"{r.train:,}", f"{r.test:,}", "yes" if r.present else "no")
            for r in rows
        ],
    )
